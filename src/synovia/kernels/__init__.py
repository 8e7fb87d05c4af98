"""Compiled mathematics on flat arrays and scalars. Kernels allocate no memory and do not validate their arguments.

Only this package imports the compiler (numba), and it imports nothing else of Synovia. The letters of formulas have the
same meaning everywhere, unless a file says otherwise:

``q``             joint values: radians, length units, quaternions (x, y, z, w)
``dq``, ``e``     a step in the columns of the Jacobian, and the residuals: radians and length scales
``J``, ``g``      the Jacobian (minus the derivative of e), and the gradient Jᵀe
``R, p``          a frame in the world, rotation and origin; ``o`` the origin of a joint, ``W`` its rotation
``T, t``          a target, rotation and position
``M``             a covariance of directions (``tree.turn``)
``F``, ``K``      the float type of all kernels (float64), and that of SIMD batches
``d``, ``w``      an error as lengths and as a rotation vector; ``w`` is also used for a weight
``i``, ``k``, ``v``, ``g``  indices of a row of the tree, a variable (or a residual), a column of J, and a goal
``n``             a number of rows, or a unit normal
"""
