! SPDX-License-Identifier: Apache-2.0
!> Part of a transformer block in Fortran, checked against plain loops: softmax(swiglu(h gate, h up) down), where
!> h is rms_norm(x). It runs on the best device, in that device's memory.
program block
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64
  use trine
  implicit none
  integer, parameter :: tokens = 5, width = 64, hidden = 160, classes = 10
  ! The contiguous dimension is first: x has a column for each token. down is as linear layers have it.
  real, target :: x(width, tokens), norm(width), gate(hidden, width), up(hidden, width), down(hidden, classes)
  real, target :: p(classes, tokens)
  real(real64) :: worst
  type(c_ptr) :: lib, queue

  call random_init(.true., .true.)
  call random_number(x)
  call random_number(norm)
  call random_number(gate)
  call random_number(up)
  call random_number(down)
  x = 2 * x - 1
  gate = 2 * gate - 1
  up = 2 * up - 1
  down = 0.01 * (2 * down - 1) ! so that no class has all of the probability

  call trine_check(trine_open(lib_out=lib))
  call trine_check(trine_queue_open(lib, TRINE_BEST_DEVICE, queue_out=queue))
  call by_trine()
  call trine_queue_close(queue)
  call trine_close(lib)

  worst = maxval(abs(p - by_loops()))
  print '(i0, " tokens, ", i0, " classes: the largest difference from plain loops is ", es7.1)', tokens, classes, &
    worst
  if (worst > 1e-5) error stop 1

contains

  !> Memory on the device of the queue, with the elements of an array of n.
  function on_device(array, n) result(memory)
    integer, intent(in) :: n
    real, intent(in), target :: array(n)
    type(c_ptr) :: memory
    call trine_check(trine_memory_alloc(queue, c_sizeof(array), memory))
    call trine_check(trine_memory_write(queue, memory, c_loc(array), c_sizeof(array)))
  end function

  subroutine by_trine()
    type(c_ptr) :: memory(9)
    type(trine_tensor) :: th, tg, tu, tp
    integer :: i
    memory(1) = on_device(x, size(x))
    memory(2) = on_device(norm, size(norm))
    memory(3) = on_device(gate, size(gate))
    memory(4) = on_device(up, size(up))
    memory(5) = on_device(down, size(down))
    call trine_check(trine_memory_alloc(queue, c_sizeof(x), memory(6)))
    call trine_check(trine_memory_alloc(queue, c_sizeof(0.0) * hidden * tokens, memory(7)))
    call trine_check(trine_memory_alloc(queue, c_sizeof(0.0) * hidden * tokens, memory(8)))
    call trine_check(trine_memory_alloc(queue, c_sizeof(p), memory(9)))
    th = trine_view(memory(6), TRINE_F32, [width, tokens])
    tg = trine_view(memory(7), TRINE_F32, [hidden, tokens])
    tu = trine_view(memory(8), TRINE_F32, [hidden, tokens])
    tp = trine_view(memory(9), TRINE_F32, shape(p))
    call trine_check(trine_rms_norm(queue, x=trine_view(memory(1), TRINE_F32, shape(x)), &
      weight=trine_view(memory(2), TRINE_F32, shape(norm)), y=th, eps=1e-6))
    call trine_check(trine_matmul(queue, th, trine_view(memory(3), TRINE_F32, shape(gate)), d=tg))
    call trine_check(trine_matmul(queue, th, trine_view(memory(4), TRINE_F32, shape(up)), d=tu))
    call trine_check(trine_swiglu(queue, gate=tg, up=tu, y=tg)) ! in place
    call trine_check(trine_matmul(queue, tg, trine_tensor_transpose(trine_view(memory(5), TRINE_F32, shape(down))), &
      d=tp))
    call trine_check(trine_softmax(queue, x=tp, y=tp))
    call trine_check(trine_memory_read(queue, c_loc(p), memory(9), c_sizeof(p))) ! waits for the queue
    do i = 1, size(memory)
      call trine_check(trine_memory_free(queue, memory(i)))
    end do
  end subroutine

  !> The same in Fortran, token by token.
  function by_loops() result(out)
    real(real64) :: out(classes, tokens), h(width), g(hidden)
    integer :: t, j
    do t = 1, tokens
      h = x(:, t) / sqrt(sum(real(x(:, t), real64)**2) / width + 1e-6_real64) * norm
      do j = 1, hidden
        g(j) = dot_product(gate(j, :), h)
        g(j) = g(j) / (1 + exp(-g(j))) * dot_product(up(j, :), h)
      end do
      do j = 1, classes
        out(j, t) = exp(dot_product(down(:, j), g))
      end do
      out(:, t) = out(:, t) / sum(out(:, t))
    end do
  end function
end program
