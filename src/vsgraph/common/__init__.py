"""What every part of the package uses: checks, blocks of rows, files, text."""
