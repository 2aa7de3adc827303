"""`python -m tritongen`: the `tritongen` command, for environments whose scripts are not on the PATH."""

from tritongen.cli.entry import main

if __name__ == "__main__":
    main()
