"""Functions for single file formats, and the verification of written files."""

from synovia.files.layers import read_layers as read_layers
from synovia.files.layers import write_layers as write_layers
from synovia.files.verify import verify_file as verify_file
from synovia.ik.starts import load_starts as load_starts
from synovia.io.bvh import write_bvh as write_bvh
from synovia.io.csvfile import read_csv as read_csv
from synovia.io.toml import write_skeleton as write_skeleton
from synovia.io.verify import FileCheck as FileCheck
from synovia.retargeting import read_map as read_map
from synovia.retargeting import write_map as write_map
from synovia.viewer import write_page as write_page
