#!/bin/sh
# Builds ringlab once, for the image in which Gradescope grades. Needs Python 3.11: Ubuntu 24.04.
set -eu
cd /autograder/source
chmod 600 secret
cd ringlab
scripts/packages build
scripts/build cpu -- ringlab
