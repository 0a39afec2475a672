"""Loops of the compiled twin of the simulator, over whole numbers in arrays.

The functions are plain Python and run compiled where numba is there, see :func:`frostline.placement.jit.compiled`.
They make the decisions of :mod:`frostline.policies` on the free GPUs of :mod:`frostline.placement.free_gpus`, for jobs
whose durations are known and the same anywhere. The arrays are those of
:class:`~frostline.simulation.compiled.state.State`; they go to the loops one by one, since compiled code counts
references to what it takes out of a tuple.

Jobs of one shape wait in one *line*. Who may ever wait in it, and in which order, is known beforehand: each of them has
a *slot*, and the slots of a line follow each other. A tree over all slots keeps the least duration that waits below
each node, eight slots or nodes to a node, so that the next job in a line, or the next that is short enough, is found
in a number of steps that grows with the logarithm of the jobs. A *hole* is a server with some number of free GPUs;
holes are bits in the order (free GPUs, server), so that the best fit of a job is the next bit.
"""

from __future__ import annotations

from math import floor, log2

import numpy as np
import numpy.typing as npt

from frostline.simulation.compiled.rule import Rule

Ints = npt.NDArray[np.int64]

NEVER = 1 << 62
"""Instant that does not come, and duration of a job that does not wait."""

RELEASE, DURATION, LINE, SLOT, PLACE, DUE, START, FIRST_LOAD, LAST_LOAD, ON_BUDGET, IN_SLOT, IN_VIRTUAL = range(12)
"""Columns of the jobs. Row i of the last two names the job of slot i, and the job that becomes due as the i-th."""
GPUS, SERVERS, LAST, HEAD, RANK, POSITION, IN_ORDER = range(7)
"""Columns of the lines: shape, one past the last slot, slot of the head and place of its job in the order, position
among the lines in the order of their heads; row i of the last one names the line at position i."""
TOTAL, COUNT, LEVELS, HOLES, BY_SERVER = range(5)
"""Entries of a row of free GPUs: how many there are, servers, where the number of servers with 0, 1, … free GPUs and
where the bits of the holes begin, in words of 32; then the free GPUs of every server."""
PRESENT, FUTURE = 0, 1
"""Rows of free GPUs: now, and at the time that is reserved."""
TREE = 16
"""Entry of the tree at which it begins; before that, where each level begins, and where the last one ends."""
COMING, WAITING, RUNNING, LOADS, NOW, WAKE, BECOME_DUE, DUE_HEAD, BUDGET, LONGEST, WORK = range(11)
"""Figures: jobs that have arrived, wait and run, rows of loads, instants, jobs that have become due and those of them
at the front that no more wait, GPUs held on the budget, longest duration and GPU-time of the jobs that have arrived."""
RESERVED, BESIDE, TIME, SPARE, ANYWHERE = range(11, 16)
"""Figures of the reservation: line and headroom that it is for, time, spare GPUs, and whether any GPUs will do."""
LIST, VIRTUAL, GUARDED, GRADED = range(4)
"""Forms of rules: a fixed order, the virtual order, a fixed order inside a guard, and one with headroom inside it."""
STRICT, BACKFILL, FIT_ANYTHING = range(3)
"""Disciplines."""

INLINED = (
    *("lowest_bit", "fits", "settle", "within", "head_of", "has_room"),
    *("next_release", "next_end", "next_due", "due_head", "join", "leave", "arrive", "start", "finish"),
    *("reserve", "spared", "harmless", "first_that_fits", "backfill_before", "in_order"),
    *("graded", "headroom_of", "decide"),
)
"""Functions that compiled code takes into their callers: each call of another counts references to its arrays."""

BASE, LIMBS = 24, 96
"""Numbers without bounds are so many limbs of so many bits, the least first."""


# -- free GPUs -------------------------------------------------------------------------------------------------------


def lowest_bit(word: int) -> int:
    """Number of the lowest bit of a word of 32 bits that is not 0."""
    bit = 0
    for width in (16, 8, 4, 2, 1):
        if not word & ((1 << width) - 1):
            word >>= width
            bit += width
    return bit


def next_hole(free: Ints, when: int, gpus: int) -> int:
    """First hole of at least so many GPUs, -1 for none."""
    first = gpus * free[when, COUNT]
    i = free[when, HOLES] + (first >> 5)
    if i >= free.shape[1]:
        return -1
    word = free[when, i] >> (first & 31) << (first & 31)
    while not word:
        i += 1
        if i == free.shape[1]:
            return -1
        word = free[when, i]
    return int((i - free[when, HOLES] << 5) + lowest_bit(word))


def change(free: Ints, when: int, server: int, gpus: int) -> None:
    """A server has so many free GPUs more, or less."""
    servers, levels, holes = free[when, COUNT], free[when, LEVELS], free[when, HOLES]
    before = free[when, BY_SERVER + server]
    after = before + gpus
    old, new = before * servers + server, after * servers + server
    free[when, holes + (old >> 5)] &= ~(1 << (old & 31))
    free[when, holes + (new >> 5)] |= 1 << (new & 31)
    free[when, levels + before] -= 1
    free[when, levels + after] += 1
    free[when, BY_SERVER + server] = after
    free[when, TOTAL] += gpus


def largest_sum(free: Ints, when: int, servers: int) -> int:
    """GPUs free in the so many servers with most of them."""
    held, zero = 0, free[when, LEVELS]
    level = free[when, HOLES] - zero - 1
    while servers > 0 and level > 0:
        count = min(servers, free[when, zero + level])
        held += count * level
        servers -= count
        level -= 1
    return held


def fits(free: Ints, when: int, gpus: int, most_servers: int) -> bool:
    """Whether free GPUs hold a job."""
    if gpus > free[when, TOTAL]:
        return False
    if most_servers >= free[when, COUNT] or next_hole(free, when, gpus) >= 0:
        return True
    return most_servers > 1 and largest_sum(free, when, most_servers) >= gpus


def take(free: Ints, gpus: int, loads: Ints, top: int) -> int:
    """Take GPUs for a job that fits, write them down from a row on, in the order of servers; the row after them.

    While no server has enough, the first of those with most free GPUs is taken whole; the rest goes to the tightest.
    """
    servers, zero, begin = free[PRESENT, COUNT], free[PRESENT, LEVELS], top
    level = free[PRESENT, HOLES] - zero - 1
    hole = next_hole(free, PRESENT, gpus)
    while hole < 0:
        while not free[PRESENT, zero + level]:
            level -= 1
        server = next_hole(free, PRESENT, level) % servers
        load(loads, begin, top, server, level)
        change(free, PRESENT, server, -level)
        gpus -= level
        top += 1
        hole = next_hole(free, PRESENT, gpus)
    load(loads, begin, top, hole % servers, gpus)
    change(free, PRESENT, hole % servers, -gpus)
    return top + 1


def load(loads: Ints, begin: int, top: int, server: int, gpus: int) -> None:
    """Write down a load among those from one row to another, which are in the order of servers."""
    row = top
    while row > begin and loads[row - 1, 0] > server:
        loads[row, 0], loads[row, 1] = loads[row - 1, 0], loads[row - 1, 1]
        row -= 1
    loads[row, 0], loads[row, 1] = server, gpus


def give(free: Ints, when: int, loads: Ints, begin: int, end: int) -> None:
    """Give GPUs back."""
    for row in range(begin, end):
        change(free, when, loads[row, 0], loads[row, 1])


# -- lines -----------------------------------------------------------------------------------------------------------


def put(waits: Ints, slot: int, duration: int) -> None:
    """Write down the duration of a slot, and the least one of every node above it."""
    waits[TREE + slot] = duration
    level = 1
    while waits[level + 1]:
        begin = waits[level - 1] + (slot & ~7)
        slot >>= 3
        least = waits[begin]
        for i in range(begin + 1, begin + 8):
            least = min(least, waits[i])
        if waits[waits[level] + slot] == least:
            return
        waits[waits[level] + slot] = least
        level += 1


def next_slot(waits: Ints, slot: int, limit: int) -> int:
    """First slot from one on whose duration is at most a limit, -1 for none."""
    level, i = 0, slot
    while True:
        begin, end = waits[level], (i | 7) + 1
        while i < end and waits[begin + i] > limit:
            i += 1
        if i < end:
            break
        if begin + end == waits[level + 1]:
            return -1
        level += 1
        i = end >> 3
    while level > 0:
        level -= 1
        i <<= 3
        while waits[waits[level] + i] > limit:
            i += 1
    return i


def within(lines: Ints, waits: Ints, line: int, limit: int) -> int:
    """First slot of a line that is not empty whose job takes no longer than a limit, -1 for none."""
    slot = next_slot(waits, lines[line, HEAD], limit)
    return slot if slot < lines[line, LAST] else -1


def set_head(lines: Ints, line: int, slot: int, place: int) -> None:
    """A line has another head, or none at slot -1, and moves to its position among the others."""
    lines[line, HEAD], lines[line, RANK] = slot, place
    i = lines[line, POSITION]
    while i > 0 and lines[lines[i - 1, IN_ORDER], RANK] > place:
        settle(lines, lines[i - 1, IN_ORDER], i)
        i -= 1
    while i + 1 < len(lines) and lines[lines[i + 1, IN_ORDER], RANK] < place:
        settle(lines, lines[i + 1, IN_ORDER], i)
        i += 1
    settle(lines, line, i)


def settle(lines: Ints, line: int, position: int) -> None:
    """A line has a position."""
    lines[position, IN_ORDER] = line
    lines[line, POSITION] = position


def join(jobs: Ints, lines: Ints, waits: Ints, figures: Ints, job: int) -> None:
    """A job waits from now on."""
    line, slot = jobs[job, LINE], jobs[job, SLOT]
    put(waits, slot, jobs[job, DURATION])
    if lines[line, HEAD] < 0 or slot < lines[line, HEAD]:
        set_head(lines, line, slot, jobs[job, PLACE])
    figures[WAITING] += 1


def leave(jobs: Ints, lines: Ints, waits: Ints, figures: Ints, job: int) -> None:
    """A job waits no more."""
    line, slot = jobs[job, LINE], jobs[job, SLOT]
    put(waits, slot, NEVER)
    if slot == lines[line, HEAD]:
        after = within(lines, waits, line, NEVER - 1)
        set_head(lines, line, after, jobs[jobs[after, IN_SLOT], PLACE] if after >= 0 else NEVER)
    figures[WAITING] -= 1


def head_of(jobs: Ints, lines: Ints, line: int) -> int:
    """Job at the head of a line that is not empty."""
    return int(jobs[lines[line, HEAD], IN_SLOT])


def has_room(lines: Ints, free: Ints, line: int) -> bool:
    """Whether the jobs of a line fit now."""
    return fits(free, PRESENT, lines[line, GPUS], lines[line, SERVERS])


# -- events ----------------------------------------------------------------------------------------------------------


def arrive(jobs: Ints, lines: Ints, waits: Ints, figures: Ints) -> None:
    """The next job arrives."""
    job = figures[COMING]
    join(jobs, lines, waits, figures, job)
    figures[COMING] += 1
    figures[LONGEST] = max(figures[LONGEST], jobs[job, DURATION])
    figures[WORK] += lines[jobs[job, LINE], GPUS] * jobs[job, DURATION]


def start(
    jobs: Ints, lines: Ints, waits: Ints, running: Ints, loads: Ints, free: Ints, figures: Ints, job: int
) -> None:
    """A job that waits and fits starts; the running ones stay sorted by (end, number), the first one last."""
    leave(jobs, lines, waits, figures, job)
    jobs[job, START], jobs[job, FIRST_LOAD] = figures[NOW], figures[LOADS]
    figures[LOADS] = take(free, lines[jobs[job, LINE], GPUS], loads, figures[LOADS])
    jobs[job, LAST_LOAD] = figures[LOADS]
    figures[BUDGET] += jobs[job, ON_BUDGET]
    i, end = figures[RUNNING], figures[NOW] + jobs[job, DURATION]
    while i > 0 and (running[i - 1, 0] < end or (running[i - 1, 0] == end and running[i - 1, 1] < job)):
        running[i, 0], running[i, 1] = running[i - 1, 0], running[i - 1, 1]
        i -= 1
    running[i, 0], running[i, 1] = end, job
    figures[RUNNING] += 1
    figures[RESERVED] = -1


def finish(jobs: Ints, running: Ints, loads: Ints, free: Ints, figures: Ints) -> None:
    """The running job that ends first is complete."""
    figures[RUNNING] -= 1
    job = running[figures[RUNNING], 1]
    give(free, PRESENT, loads, jobs[job, FIRST_LOAD], jobs[job, LAST_LOAD])
    figures[BUDGET] -= jobs[job, ON_BUDGET]
    figures[RESERVED] = -1


def next_release(jobs: Ints, figures: Ints) -> int:
    """When the next job arrives."""
    return jobs[figures[COMING], RELEASE] if figures[COMING] < len(jobs) else NEVER


def next_end(running: Ints, figures: Ints) -> int:
    """When the next running job ends."""
    return running[figures[RUNNING] - 1, 0] if figures[RUNNING] else NEVER


def next_due(jobs: Ints, figures: Ints) -> int:
    """When the next job becomes due."""
    coming = figures[BECOME_DUE]
    return jobs[jobs[coming, IN_VIRTUAL], DUE] if coming < len(jobs) else NEVER


def due_head(jobs: Ints, waits: Ints, figures: Ints) -> int:
    """First due job that waits, -1 for none."""
    while figures[DUE_HEAD] < figures[BECOME_DUE]:
        job = jobs[figures[DUE_HEAD], IN_VIRTUAL]
        if waits[TREE + jobs[job, SLOT]] < NEVER:
            return int(job)
        figures[DUE_HEAD] += 1
    return -1


# -- reservations ----------------------------------------------------------------------------------------------------


def reserve(
    jobs: Ints, lines: Ints, running: Ints, loads: Ints, free: Ints, figures: Ints, line: int, headroom: int
) -> None:
    """Find when jobs of a blocked line fit, with so many GPUs free beside theirs, if nothing new starts.

    It is known until the next start or completion.
    """
    if figures[RESERVED] == line and figures[BESIDE] == headroom:
        return
    gpus, servers = lines[line, GPUS], lines[line, SERVERS]
    anywhere = servers >= free[PRESENT, COUNT]
    total, time, k = free[PRESENT, TOTAL], figures[NOW], figures[RUNNING] - 1
    if not anywhere:
        for i in range(free.shape[1]):
            free[FUTURE, i] = free[PRESENT, i]
    while k >= 0:
        end, job = running[k, 0], running[k, 1]
        if end > time and total >= gpus + headroom and (anywhere or fits(free, FUTURE, gpus, servers)):
            break
        time = end
        total += lines[jobs[job, LINE], GPUS]
        if not anywhere:
            give(free, FUTURE, loads, jobs[job, FIRST_LOAD], jobs[job, LAST_LOAD])
        k -= 1
    figures[RESERVED], figures[BESIDE], figures[ANYWHERE] = line, headroom, anywhere
    figures[TIME], figures[SPARE] = time, total - gpus - headroom


def spared(lines: Ints, loads: Ints, free: Ints, figures: Ints, line: int) -> bool:
    """Whether the GPUs on offer for jobs of a line that fit now are spare at the reserved time."""
    gpus, reserved = lines[line, GPUS], figures[RESERVED]
    if gpus > figures[SPARE] or figures[ANYWHERE]:
        return bool(gpus <= figures[SPARE])
    begin = figures[LOADS]
    end = take(free, gpus, loads, begin)
    give(free, PRESENT, loads, begin, end)
    for row in range(begin, end):
        change(free, FUTURE, loads[row, 0], -loads[row, 1])
    holds = fits(free, FUTURE, lines[reserved, GPUS], lines[reserved, SERVERS])
    give(free, FUTURE, loads, begin, end)
    return holds


def harmless(lines: Ints, waits: Ints, loads: Ints, free: Ints, figures: Ints, line: int, lend: bool) -> int:
    """First slot of a line that fits now whose job cannot delay the reservation, -1 for none."""
    slot = within(lines, waits, line, figures[TIME] - figures[NOW])
    head = lines[line, HEAD]
    return head if lend and slot != head and spared(lines, loads, free, figures, line) else slot


# -- rules -----------------------------------------------------------------------------------------------------------


def first_that_fits(jobs: Ints, lines: Ints, free: Ints) -> int:
    """First job in order that fits, -1 for none."""
    for i in range(len(lines)):
        line = lines[i, IN_ORDER]
        if lines[line, RANK] == NEVER:
            break
        if has_room(lines, free, line):
            return head_of(jobs, lines, line)
    return -1


def backfill_before(
    jobs: Ints, lines: Ints, waits: Ints, loads: Ints, free: Ints, figures: Ints, budget: int, lend: bool
) -> int:
    """First job in order that fits and cannot delay the reservation, or holds no more than a budget; -1 for none.

    Without a reservation the budget alone counts. A job may be lent GPUs that are spare at the reserved time.
    """
    chosen, best, paid = -1, NEVER, 0
    for i in range(len(lines)):
        line = lines[i, IN_ORDER]
        if lines[line, RANK] >= best:
            break
        if not has_room(lines, free, line):
            continue
        slot = harmless(lines, waits, loads, free, figures, line, lend) if figures[RESERVED] >= 0 else -1
        price = 0
        if lines[line, GPUS] <= budget and slot != lines[line, HEAD]:
            slot, price = lines[line, HEAD], lines[line, GPUS]
        if slot >= 0 and jobs[jobs[slot, IN_SLOT], PLACE] < best:
            chosen, paid = jobs[slot, IN_SLOT], price
            best = jobs[chosen, PLACE]
    if chosen >= 0:
        jobs[chosen, ON_BUDGET] = paid
    return chosen


def in_order(
    jobs: Ints,
    lines: Ints,
    waits: Ints,
    running: Ints,
    loads: Ints,
    free: Ints,
    figures: Ints,
    first: int,
    strict: bool,
    budget: int,
    lend: bool,
) -> int:
    """First job of some order, -1 for none, if it fits, else one that may overtake it; -1 for no start."""
    if first >= 0 and has_room(lines, free, jobs[first, LINE]):
        return first
    if strict:
        return -1
    if first >= 0:
        reserve(jobs, lines, running, loads, free, figures, jobs[first, LINE], 0)
    else:
        figures[RESERVED] = -1
    return backfill_before(jobs, lines, waits, loads, free, figures, budget, lend)


def graded(
    jobs: Ints, lines: Ints, waits: Ints, running: Ints, loads: Ints, free: Ints, figures: Ints, rule: Rule
) -> int:
    """First job in order that fits with headroom and cannot delay the first one that does not; -1 for none."""
    blocked = -1
    for i in range(len(lines) if free[PRESENT, TOTAL] else 0):
        line = lines[i, IN_ORDER]
        if lines[line, RANK] == NEVER:
            break
        spare = free[PRESENT, TOTAL] - lines[line, GPUS]
        if spare >= 0 and spare >= headroom_of(jobs, lines, figures, rule, line) and has_room(lines, free, line):
            if blocked < 0:
                return head_of(jobs, lines, line)
            beside = headroom_of(jobs, lines, figures, rule, blocked)
            reserve(jobs, lines, running, loads, free, figures, blocked, beside)
            if harmless(lines, waits, loads, free, figures, line, True) == lines[line, HEAD]:
                return head_of(jobs, lines, line)
        elif blocked < 0:
            blocked = line
    return -1


def headroom_of(jobs: Ints, lines: Ints, figures: Ints, rule: Rule, line: int) -> int:
    """GPUs to be left free beside the head of a line."""
    gpus = lines[line, GPUS]
    others = rule.gpus - gpus
    area = gpus * jobs[head_of(jobs, lines, line), DURATION]
    eighths = doublings(area, figures[COMING], rule.small[1], rule.small[0], figures[WORK])
    return int(min(rule.share[0] * eighths * others // (8 * rule.share[1]), others))


def decide(
    jobs: Ints, lines: Ints, waits: Ints, running: Ints, loads: Ints, free: Ints, figures: Ints, rule: Rule
) -> int:
    """Next start, -1 for none; then it may be told when to decide again."""
    first, due, virtual, strict = -1, NEVER, rule.form != LIST, rule.discipline == STRICT
    if virtual:
        first = due_head(jobs, waits, figures)
        due = jobs[first, DUE] if first >= 0 else next_due(jobs, figures)
    if rule.form >= GUARDED:
        due += int(rule.patience * figures[LONGEST])
        virtual = first >= 0 and due <= figures[NOW]
        strict = strict and not virtual
    if not virtual:
        first = head_of(jobs, lines, lines[0, IN_ORDER])
    if not virtual and rule.form == GRADED:
        job = graded(jobs, lines, waits, running, loads, free, figures, rule)
    elif not virtual and rule.discipline == FIT_ANYTHING:
        job = first_that_fits(jobs, lines, free)
    else:
        left = rule.budget - figures[BUDGET]
        job = in_order(jobs, lines, waits, running, loads, free, figures, first, strict, left, not virtual)
    if job < 0 and due > figures[NOW]:
        figures[WAKE] = due
    return job


def play(
    jobs: Ints,
    lines: Ints,
    waits: Ints,
    running: Ints,
    loads: Ints,
    free: Ints,
    figures: Ints,
    rule: Rule,
    instants: int,
) -> bool:
    """Handle what happens at the next so many instants; whether anything happened at the last.

    Events of one instant: completions, virtual completions, arrivals, decisions.
    """
    for _ in range(instants):
        now = min(next_release(jobs, figures), next_end(running, figures), figures[WAKE])
        if now >= NEVER:
            return False
        figures[NOW], figures[WAKE] = now, NEVER
        while next_end(running, figures) == now:
            finish(jobs, running, loads, free, figures)
        while next_due(jobs, figures) <= now:
            figures[BECOME_DUE] += 1
        while next_release(jobs, figures) == now:
            arrive(jobs, lines, waits, figures)
        while figures[WAITING] > 0:
            job = decide(jobs, lines, waits, running, loads, free, figures, rule)
            if job < 0:
                break
            start(jobs, lines, waits, running, loads, free, figures, job)
    return True


# -- headroom --------------------------------------------------------------------------------------------------------


def limbs_of(number: int) -> Ints:
    """Limbs of a whole number below 2^62."""
    limbs = np.zeros(LIMBS, np.int64)
    for i in range(3):
        limbs[i] = number >> BASE * i & (1 << BASE) - 1
    return limbs


def product(a: Ints, b: Ints) -> Ints:
    """Product of two numbers, which has no more limbs than there are."""
    limbs = np.zeros(LIMBS, np.int64)
    for i in range(LIMBS):
        if a[i]:
            for k in range(LIMBS - i):
                limbs[i + k] += a[i] * b[k]
    for i in range(LIMBS - 1):
        limbs[i + 1] += limbs[i] >> BASE
        limbs[i] &= (1 << BASE) - 1
    return limbs


def eighth_power(number: Ints) -> Ints:
    """Its eighth power."""
    square = product(number, number)
    fourth = product(square, square)
    return product(fourth, fourth)


def reaches(size: Ints, small: Ints, eighths: int) -> bool:
    """Whether a number is at least another one times 2^(eighths / 8), exactly."""
    power = np.zeros(LIMBS, np.int64)
    power[eighths // BASE] = 1 << eighths % BASE
    left, right = eighth_power(size), product(eighth_power(small), power)
    for i in range(LIMBS - 1, -1, -1):
        if left[i] != right[i]:
            return bool(left[i] > right[i])
    return True


def doublings(area: int, count: int, scale: int, small: int, work: int) -> int:
    """Eighths of doublings from ``small · work`` to ``scale · area · count``, rounded down, at least 0.

    Where the logarithm cannot tell, powers in whole numbers do.
    """
    ratio = float(area) * float(count) * float(scale) / (float(small) * float(work))
    eighths = 8.0 * log2(ratio)
    nearest = floor(eighths + 0.5)
    if abs(eighths - nearest) > 1e-9:
        return max(floor(eighths), 0)
    if nearest <= 0:
        return 0
    size = product(product(limbs_of(area), limbs_of(count)), limbs_of(scale))
    return nearest if reaches(size, product(limbs_of(small), limbs_of(work)), nearest) else nearest - 1
