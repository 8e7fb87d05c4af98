"""Read SMPL body models from the user's own files, and AMASS clips, which need them."""
