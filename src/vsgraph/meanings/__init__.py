"""What labels mean: WordNet, words, senses, the table that people edit."""
