class Binding:
    __slots__ = ()
