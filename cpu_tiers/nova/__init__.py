"""The classes and seams for an unmodified Nova, and the only folder that imports Nova.

Importing a module of this folder changes no function of Nova. A service installs its seams when
the service loads the class or entry point of cpu-tiers; see ``docs/contributor/house.rst``.
"""
