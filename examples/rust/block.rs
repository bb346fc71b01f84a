// SPDX-License-Identifier: Apache-2.0
//! Part of a transformer block in Rust, checked against plain loops: softmax(swiglu(h gate, h up) down), where h is
//! rms_norm(x). It runs on the best device, in that device's memory.
use std::ffi::c_void;
use std::mem::size_of_val;
use std::process::ExitCode;
use std::ptr::{null, null_mut};
use trine_sys::*;

const TOKENS: usize = 5;
const WIDTH: usize = 64;
const HIDDEN: usize = 160;
const CLASSES: usize = 10;

/// A status as a result, with the library's sentence.
fn check(status: trine_status) -> Result<(), String> {
    if status == TRINE_OK {
        Ok(())
    } else {
        Err(message())
    }
}

/// The library and a queue on its best device, closed at the end.
struct Device {
    lib: *mut trine_library,
    queue: *mut trine_queue,
}

impl Device {
    fn open() -> Result<Self, String> {
        let mut device = Device { lib: null_mut(), queue: null_mut() };
        check(unsafe { trine_open(null(), &mut device.lib) })?;
        check(unsafe { trine_queue_open(device.lib, TRINE_BEST_DEVICE, null(), &mut device.queue) })?;
        Ok(device)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        unsafe {
            trine_queue_close(self.queue);
            trine_close(self.lib);
        }
    }
}

/// A matrix of f32 in the memory of a device.
struct Matrix<'a> {
    device: &'a Device,
    memory: *mut c_void,
    rows: usize,
    columns: usize,
}

impl<'a> Matrix<'a> {
    fn new(device: &'a Device, rows: usize, columns: usize) -> Result<Self, String> {
        let mut memory = null_mut();
        check(unsafe { trine_memory_alloc(device.queue, rows * columns * 4, &mut memory) })?;
        Ok(Matrix { device, memory, rows, columns })
    }

    fn from(device: &'a Device, rows: usize, columns: usize, host: &[f32]) -> Result<Self, String> {
        assert_eq!(host.len(), rows * columns);
        let matrix = Self::new(device, rows, columns)?;
        check(unsafe { trine_memory_write(device.queue, matrix.memory, host.as_ptr().cast(), size_of_val(host)) })?;
        Ok(matrix)
    }

    /// Its elements; waits for the queue.
    fn read(&self) -> Result<Vec<f32>, String> {
        let mut host = vec![0f32; self.rows * self.columns];
        let bytes = size_of_val(&host[..]);
        check(unsafe { trine_memory_read(self.device.queue, host.as_mut_ptr().cast(), self.memory, bytes) })?;
        Ok(host)
    }

    fn tensor(&self) -> trine_tensor {
        unsafe { trine_tensor_2d(self.memory, TRINE_F32, self.rows as i64, self.columns as i64) }
    }
}

impl Drop for Matrix<'_> {
    fn drop(&mut self) {
        unsafe { trine_memory_free(self.device.queue, self.memory) };
    }
}

struct Weights {
    norm: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>, // as linear layers have it, a row for each output
}

/// Numbers in [-1, 1) that are the same everywhere.
fn numbers(count: usize, mut seed: u32) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        (seed >> 8) as f32 / 8388608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn by_trine(device: &Device, x: &[f32], w: &Weights) -> Result<Vec<f32>, String> {
    let queue = device.queue;
    let product = |a: &trine_tensor, b: &trine_tensor, d: &trine_tensor| {
        check(unsafe { trine_matmul(queue, &trine_matmul_args { a, b, d, ..Default::default() }) })
    };
    let x = Matrix::from(device, TOKENS, WIDTH, x)?;
    let norm = Matrix::from(device, 1, WIDTH, &w.norm)?;
    let gate = Matrix::from(device, WIDTH, HIDDEN, &w.gate)?;
    let up = Matrix::from(device, WIDTH, HIDDEN, &w.up)?;
    let down = Matrix::from(device, CLASSES, HIDDEN, &w.down)?;
    let h = Matrix::new(device, TOKENS, WIDTH)?;
    let (g, u) = (Matrix::new(device, TOKENS, HIDDEN)?, Matrix::new(device, TOKENS, HIDDEN)?);
    let p = Matrix::new(device, TOKENS, CLASSES)?;

    let (tx, th, tg, tu, tp) = (x.tensor(), h.tensor(), g.tensor(), u.tensor(), p.tensor());
    let weight = unsafe { trine_tensor_1d(norm.memory, TRINE_F32, WIDTH as i64) };
    let args = trine_rms_norm_args { x: &tx, weight: &weight, y: &th, eps: 1e-6, ..Default::default() };
    check(unsafe { trine_rms_norm(queue, &args) })?;
    product(&th, &gate.tensor(), &tg)?;
    product(&th, &up.tensor(), &tu)?;
    let args = trine_swiglu_args { gate: &tg, up: &tu, y: &tg, ..Default::default() }; // in place
    check(unsafe { trine_swiglu(queue, &args) })?;
    product(&tg, &unsafe { trine_tensor_transpose(&down.tensor()) }, &tp)?;
    let args = trine_softmax_args { x: &tp, y: &tp, ..Default::default() };
    check(unsafe { trine_softmax(queue, &args) })?;
    p.read()
}

fn by_loops(x: &[f32], w: &Weights) -> Vec<f64> {
    let dot =
        |a: &[f64], b: &mut dyn Iterator<Item = &f32>| a.iter().zip(b).map(|(&a, &b)| a * f64::from(b)).sum::<f64>();
    let mut out = Vec::new();
    for row in x.chunks(WIDTH) {
        let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / WIDTH as f64;
        let scaled = |(&x, &w): (&f32, &f32)| f64::from(x) / (mean + 1e-6).sqrt() * f64::from(w);
        let h: Vec<f64> = row.iter().zip(&w.norm).map(scaled).collect();
        let glu = |j: usize| {
            let g = dot(&h, &mut w.gate[j..].iter().step_by(HIDDEN));
            g / (1.0 + (-g).exp()) * dot(&h, &mut w.up[j..].iter().step_by(HIDDEN))
        };
        let a: Vec<f64> = (0..HIDDEN).map(glu).collect();
        let e: Vec<f64> = w.down.chunks(HIDDEN).map(|down| dot(&a, &mut down.iter()).exp()).collect();
        out.extend(e.iter().map(|e_k| e_k / e.iter().sum::<f64>()));
    }
    out
}

fn run() -> Result<bool, String> {
    let x = numbers(TOKENS * WIDTH, 1);
    let w = Weights {
        norm: numbers(WIDTH, 2),
        gate: numbers(WIDTH * HIDDEN, 3),
        up: numbers(WIDTH * HIDDEN, 4),
        down: numbers(HIDDEN * CLASSES, 5).iter().map(|x| x * 0.01).collect(), // so that no class has all
    };
    let p = by_trine(&Device::open()?, &x, &w)?;
    let worst = p.iter().zip(by_loops(&x, &w)).map(|(&p, e)| (f64::from(p) - e).abs()).fold(0.0, f64::max);
    println!("{TOKENS} tokens, {CLASSES} classes: the largest difference from plain loops is {worst:.1e}");
    Ok(worst < 1e-5)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
