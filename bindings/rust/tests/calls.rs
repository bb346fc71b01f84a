// SPDX-License-Identifier: Apache-2.0
//! Calls through the crate: an op, its errors, bf16, and what can be asked.
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use trine_sys::*;

/// Runs something on a CPU queue.
fn with_queue(run: impl FnOnce(*mut trine_library, *mut trine_queue)) {
    let (mut lib, mut queue) = (null_mut(), null_mut());
    unsafe {
        assert_eq!(trine_open(null(), &mut lib), TRINE_OK, "{}", message());
        let options = trine_queue_options { threads: 1, ..Default::default() };
        assert_eq!(trine_queue_open(lib, 0, &options, &mut queue), TRINE_OK, "{}", message());
        run(lib, queue);
        trine_queue_close(queue);
        trine_close(lib);
    }
}

fn input<T>(elements: &[T], dtype: trine_dtype) -> trine_tensor {
    unsafe { trine_tensor_1d(elements.as_ptr() as *mut _, dtype, elements.len() as i64) }
}

fn output<T>(elements: &mut [T], dtype: trine_dtype) -> trine_tensor {
    unsafe { trine_tensor_1d(elements.as_mut_ptr().cast(), dtype, elements.len() as i64) }
}

#[test]
fn an_op() {
    let (x, mut y) = ([1f32, 2.0, 3.0, 4.0, 2.0, 2.0, 2.0, 2.0], [0f32; 8]);
    with_queue(|_, queue| unsafe {
        let tx = trine_tensor_2d(x.as_ptr() as *mut _, TRINE_F32, 2, 4);
        let ty = trine_tensor_2d(y.as_mut_ptr().cast(), TRINE_F32, 2, 4);
        let args = trine_rms_norm_args { x: &tx, y: &ty, eps: 1e-6, ..Default::default() };
        assert_eq!(trine_rms_norm(queue, &args), TRINE_OK, "{}", message());
        let mut bytes = usize::MAX;
        let op = trine_op_find("rms_norm\0".as_ptr().cast());
        assert_eq!(op, TRINE_OP_RMS_NORM);
        let any: *const trine_rms_norm_args = &args;
        assert_eq!(trine_workspace(queue, op, any.cast(), &mut bytes), TRINE_OK, "{}", message());
        assert!(bytes < 1 << 20, "{bytes} bytes of workspace");
    });
    assert!((y[3] - 4.0 / 7.5f32.sqrt()).abs() < 1e-5 && (y[4] - 1.0).abs() < 1e-5);
}

#[test]
fn a_wrong_shape() {
    let (x, weight, mut y) = ([1f32; 8], [1f32; 5], [7f32; 8]);
    with_queue(|_, queue| unsafe {
        let tx = trine_tensor_2d(x.as_ptr() as *mut _, TRINE_F32, 2, 4);
        let ty = trine_tensor_2d(y.as_mut_ptr().cast(), TRINE_F32, 2, 4);
        let tw = input(&weight, TRINE_F32);
        let args = trine_rms_norm_args { x: &tx, weight: &tw, y: &ty, ..Default::default() };
        assert_eq!(trine_rms_norm(queue, &args), TRINE_ERR_ARGUMENT);
    });
    assert_eq!(message(), "rms_norm: weight has shape [5], but n = 4 from x");
    assert_eq!(y, [7.0; 8]);
}

#[test]
fn bf16() {
    // -2 and 0.5
    let (x, mut y, mut z) = ([0xc000u16, 0x3f00], [0u16; 2], [0u16; 2]);
    with_queue(|_, queue| unsafe {
        let (tx, ty, tz) = (input(&x, TRINE_BF16), output(&mut y, TRINE_BF16), output(&mut z, TRINE_BF16));
        let args = trine_scale_args { x: &tx, y: &ty, alpha: 2.0, ..Default::default() };
        assert_eq!(trine_scale(queue, &args), TRINE_OK, "{}", message());
        // A zero that is meant.
        let args = trine_scale_args { x: &tx, y: &tz, alpha: -0.0, shift: 1.0, ..Default::default() };
        assert_eq!(trine_scale(queue, &args), TRINE_OK, "{}", message());
    });
    assert_eq!((y, z), ([0xc080, 0x3f80], [0x3f80, 0x3f80]));
}

#[test]
fn devices() {
    with_queue(|lib, queue| unsafe {
        let mut info = trine_device_info_t::default();
        assert_eq!(trine_device_info(lib, trine_queue_device(queue), &mut info), TRINE_OK);
        assert_eq!(CStr::from_ptr(info.name).to_str(), Ok("cpu"));
        assert!(info.units >= 1 && info.memory > 0 && info.emulated == 0);
        assert_eq!(trine_device_info(lib, 1000, &mut info), TRINE_ERR_NOT_FOUND);
        assert!(message().contains("1000"), "{}", message());
    });
}
