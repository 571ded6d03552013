"""The command `adahi`, as `python -m adahi_ros`."""

from adahi_ros.cli import main

if __name__ == "__main__":
    main()
