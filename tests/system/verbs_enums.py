"""The values of libibverbs' enumerations as module-level names, as pyverbs.enums had them before
rdma-core 65 made each enumeration a class."""
try:
    from pyverbs.enums import *  # noqa: F401,F403
except ImportError:
    import enum
    from pyverbs import libibverbs_enums

    for _kind in list(vars(libibverbs_enums).values()):
        if isinstance(_kind, enum.EnumMeta):
            globals().update(_kind.__members__)
