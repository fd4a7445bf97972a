"""`python -m transom`."""

from transom.cli.main import main

if __name__ == "__main__":
    main()
