"""How long one iteration takes, given which server holds which replica."""
