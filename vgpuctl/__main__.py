"""`python -m vgpuctl` is the console script."""

from vgpuctl.cli.main import main

if __name__ == "__main__":
    main()
