"""The compiler: lowering, donation, devices, executable cache. The only room that calls jax.jit."""
