"""The tool around the rules: reads repositories, runs the rules that were chosen, fixes and explains."""
