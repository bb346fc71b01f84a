! SPDX-License-Identifier: Apache-2.0
!> trine.f90: views of arrays and their sections, ops by names and by C's structures, errors, bf16, strings.
program test
  use, intrinsic :: iso_c_binding
  use trine
  implicit none
  integer :: count = 0, failed = 0
  type(c_ptr) :: lib, queue

  call trine_check(trine_open(lib_out=lib))
  call trine_check(trine_queue_open(lib, 0, trine_queue_options(threads=1), queue))
  call views()
  call ops()
  call errors()
  call halves()
  call questions()
  call trine_queue_close(queue)
  call trine_close(lib)
  print '("1..", i0)', count
  if (failed > 0) error stop 1

contains

  subroutine tap(good, name)
    logical, intent(in) :: good
    character(len=*), intent(in) :: name
    count = count + 1
    if (.not. good) failed = failed + 1
    if (.not. good) write (*, '(a)', advance='no') 'not '
    print '("ok ", i0, " - ", a)', count, name
  end subroutine

  !> Whether a view is of this type, shape and strides, in trine's order.
  logical function is(view, data, dtype, n, stride)
    type(trine_tensor), intent(in) :: view
    type(c_ptr), intent(in) :: data
    integer(c_int), intent(in) :: dtype, n(:), stride(:)
    is = c_associated(view%data, data) .and. view%dtype == dtype .and. view%rank == size(n) .and. &
      all(view%shape(:size(n)) == n) .and. all(view%stride(:size(n)) == stride)
  end function

  subroutine views()
    real, target :: x(4, 3), y(2, 3, 4, 5)
    double precision, target :: d(7)
    integer(c_int8_t), target :: i(5)
    integer(c_int64_t), target :: long(2, 2)
    real, allocatable, target :: empty(:, :)
    type(trine_tensor) :: none
    allocate (empty(0, 3))
    call tap(is(trine_view(x), c_loc(x), TRINE_F32, [3, 4], [4, 1]), 'an array: the dimensions are turned round')
    call tap(is(trine_view(y), c_loc(y), TRINE_F32, [5, 4, 3, 2], [24, 6, 2, 1]), 'an array of rank 4')
    call tap(is(trine_view(d), c_loc(d), TRINE_F64, [7], [1]), 'double precision')
    call tap(is(trine_view(i, TRINE_E4M3), c_loc(i), TRINE_E4M3, [5], [1]), 'a type that Fortran has not')
    call tap(is(trine_view(long), c_loc(long), TRINE_I64, [2, 2], [2, 1]), '64-bit integers')
    call tap(is(trine_view(x(2:3, :)), c_loc(x(2, 1)), TRINE_F32, [3, 2], [4, 1]), 'a section of rows')
    call tap(is(trine_view(x(:, ::2)), c_loc(x), TRINE_F32, [2, 4], [8, 1]), 'every second column')
    call tap(is(trine_view(x(2, :)), c_loc(x(2, 1)), TRINE_F32, [3], [4]), 'a row, whose elements are apart')
    call tap(is(trine_view(d(7:1:-3)), c_loc(d(7)), TRINE_F64, [3], [-3]), 'a section that runs backwards')
    call tap(is(trine_view(x(:, 2:2)), c_loc(x(1, 2)), TRINE_F32, [1, 4], [4, 1]), 'a dimension of length 1')
    none = trine_view(empty)
    call tap(none%rank == 2 .and. all(none%shape(:2) == [3, 0]), 'an empty array')
    call tap(is(trine_view(c_loc(x), TRINE_BF16, shape(x)), c_loc(x), TRINE_BF16, [3, 4], [4, 1]), 'memory')
    call tap(is(trine_view(c_loc(x), TRINE_I8, [2_c_int64_t]), c_loc(x), TRINE_I8, [2], [1]), 'memory, 64-bit sizes')
    call tap(is(trine_tensor_transpose(trine_view(x)), c_loc(x), TRINE_F32, [4, 3], [1, 4]), 'transposed')
  end subroutine

  subroutine ops()
    real, target :: x(4, 2), y(4, 2), a(2, 3), b(4, 2), d(4, 3)
    type(trine_tensor), target :: tx, ty
    type(trine_rms_norm_args) :: args
    x = reshape([1.0, 2.0, 3.0, 4.0, 2.0, 2.0, 2.0, 2.0], [4, 2])
    call trine_check(trine_rms_norm(queue, x=trine_view(x), y=trine_view(y), eps=1e-6))
    call tap(all(abs(y(:, 1) - x(:, 1) / sqrt(7.5)) < 1e-5) .and. all(abs(y(:, 2) - 1) < 1e-5), 'an op')

    y = 0
    tx = trine_view(x)
    ty = trine_view(y)
    args = trine_rms_norm_args(x=c_loc(tx), y=c_loc(ty))
    call trine_check(trine_rms_norm(queue, args))
    call tap(abs(y(4, 1) - 4 / sqrt(7.5)) < 1e-5, 'an op by the structure of C')

    a = reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
    b = reshape([1.0, -1.0, 2.0, 0.0, 0.0, 3.0, 1.0, 1.0], [4, 2])
    call trine_check(trine_matmul(queue, trine_view(a), trine_view(b), d=trine_view(d)))
    call tap(all(abs(d - matmul(b, a)) < 1e-6), 'a product is matmul(b, a)')

    call trine_check(trine_softmax(queue, trine_view(x), trine_view(y), scale=0.0))
    call tap(all(abs(y - 0.25) < 1e-6), 'a zero that is passed is one')
    call trine_check(trine_softmax(queue, trine_view(x), trine_view(y), causal=.true.))
    call tap(abs(sum(y(:, 1)) - 1) < 1e-6 .and. abs(y(4, 1)) < 1e-6 .and. abs(y(4, 2) - 0.25) < 1e-6, 'a switch')
    call trine_check(trine_gelu(queue, trine_view(x), trine_view(y), form=TRINE_GELU_ERF))
    call tap(abs(y(1, 1) - 0.841345) < 1e-6, 'a choice')
  end subroutine

  subroutine errors()
    real, target :: x(4, 2), y(4, 2), weight(5)
    type(c_ptr) :: none
    integer(c_int) :: status
    x = 1
    y = 7
    weight = 1
    status = trine_rms_norm(queue, x=trine_view(x), weight=trine_view(weight), y=trine_view(y))
    call tap(status == TRINE_ERR_ARGUMENT, 'a wrong shape is refused')
    call tap(trine_message() == 'rms_norm: weight has shape [5], but n = 4 from x', trine_message())
    call tap(all(abs(y - 7) <= 0), 'outputs are untouched then')
    status = trine_queue_open(lib, 1000, queue_out=none)
    call tap(status == TRINE_ERR_NOT_FOUND, trine_message())
  end subroutine

  subroutine halves()
    integer(c_int16_t), target :: x(2), y(2)
    x = int([-16384, 16128], c_int16_t) ! c000 and 3f00: -2 and 0.5 in bf16
    call trine_check(trine_scale(queue, trine_view(x, TRINE_BF16), trine_view(y, TRINE_BF16), alpha=2.0))
    call tap(all(y == [-16256, 16256]), 'an op on bf16')
  end subroutine

  subroutine questions()
    type(trine_device_info_t) :: info
    type(trine_relu2_args), target :: args
    type(trine_tensor), target :: tx, ty
    real, target :: x(3), y(3)
    integer(c_size_t) :: bytes
    call trine_check(trine_device_info(lib, trine_queue_device(queue), info))
    call tap(trine_string(info%name) == 'cpu' .and. info%units >= 1, 'a device')
    call tap(trine_device_find(lib, 'cpu' // c_null_char) == 0, 'the device of a name')
    call tap(trine_string(c_null_ptr) == '', 'a string that is none')
    tx = trine_view(x)
    ty = trine_view(y)
    args = trine_relu2_args(x=c_loc(tx), y=c_loc(ty))
    call trine_check(trine_workspace(queue, TRINE_OP_RELU2, c_loc(args), bytes))
    call tap(bytes == 0, 'the workspace of a call')
  end subroutine
end program
