"""From programs to executables: lowering, donation, devices, the executable cache. The only room that calls jax.jit."""
