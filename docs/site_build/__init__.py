"""Parts of the build of the documentation site, each a Sphinx extension but `check`, which reads the built pages."""
