"""Tests of the console's page, in Chromium: run.py [NAME...], as unittest has them.

Exit code 77, for ctest: skipped, as Chromium is not here; the last line says what to install.
With TIMECACHED_ALL_CLIENTS in the environment that is a failure."""

import os
import sys
import unittest

import browser

SKIPPED = 77


def main():
    packages = browser.lacking()
    if packages:
        failed = bool(os.environ.get("TIMECACHED_ALL_CLIENTS"))
        print(f"console: {'FAILED' if failed else 'SKIPPED'}, not installed: apt-get install "
              f"--no-install-recommends {' '.join(packages)}, or ./dev install --all")
        return 1 if failed else SKIPPED
    # It imports selenium.
    import page_case  # pylint: disable=import-outside-toplevel
    directory = os.path.dirname(os.path.abspath(__file__))
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(directory, "*_test.py")
    try:
        return 0 if unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful() else 1
    finally:
        page_case.close_browser()


if __name__ == "__main__":
    sys.exit(main())
