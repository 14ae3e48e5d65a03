"""The values of libibverbs' enumerations by their names, as pyverbs.enums had them until each of
these became a class (rdma-core 65)."""
try:
    from pyverbs.enums import *  # noqa: F401,F403
except ImportError:
    import enum
    from pyverbs import libibverbs_enums

    for _kind in list(vars(libibverbs_enums).values()):
        if isinstance(_kind, enum.EnumMeta):
            globals().update(_kind.__members__)
