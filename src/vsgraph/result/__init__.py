"""What a correction found out: scores, decisions, the record, why."""
