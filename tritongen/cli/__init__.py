"""The command line: parse, call one verb, report, exit. Only this package prints."""
