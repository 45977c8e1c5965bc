"""What the recipe on kernels promises: names decoded, on real names, and the switches that it tells of."""

import re
import subprocess
import sys

import pytest
import torch

import book_rules as rules
import recipe_scripts

PAGE = recipe_scripts.COOKBOOK / "which_kernel.ipynb"
# names as profilers printed them, in public repositories
NAMES = {
    "cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16_knob_7_128x128x128": ("tensor cores", "16 bits"),
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_32_64x64x64": ("tensor cores", "16 bits"),
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<": ("tensor cores", ""),
    "void at::native::tinygemm_m16n8k16_chunk_kernel<": ("tensor cores", ""),
    "turing_int8_i8816gemm_int8_128x128_ldg16_mul_relu_stages_64x1_tn": ("tensor cores", "int8"),
    "nvjet_sss_tf32_128x256_TNT": ("tensor cores", "TF32"),
    "sm90_fp8_gemm_1d2d_impl": ("tensor cores", "FP8"),
    "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_relu_f2f_stages_64x5_tn": ("tensor cores", "bfloat16"),
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn": ("tensor cores", "float16"),
    "turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_stages_32x1_tn": ("tensor cores", "float16"),
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn": ("tensor cores", "float16"),
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>"
    "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)": ("tensor cores", "bfloat16"),
    "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4": ("tensor cores", "TF32"),
    "cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16": ("tensor cores", "int8"),
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize256x128x32_warpgroupsize2x1x1_execute_segment_k_off_kernel"
    "__5x_cublas": ("tensor cores", "TF32"),
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel"
    "__5x_cublas": ("tensor cores", "bfloat16"),
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1"
    "_execute_segment_k_off_kernel__5x_cudnn": ("tensor cores", "bfloat16"),  # pytorch/kineto issue 1041
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_stage3_warpsize4x1x1_g1"
    "_tensor16x8x16_kernel": ("tensor cores", "float16"),
    "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_tensor16x8x32_algo2"
    "_execute_kernel__5x_cublas": ("tensor cores", "FP8"),
    "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_cgasize1x2x1_stage4_gmmastage2"
    "_warpgroupsize1x1x1_tensor64x128x32": ("tensor cores", "FP8"),
    "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT": ("tensor cores", "bfloat16"),
    "nvjet_sm100_tst_64x8_64x16_4x1_v_bz_TNT": ("tensor cores", "bfloat16"),
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT": ("tensor cores", "float16"),
    "nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT": ("tensor cores", "FP8"),
    "nvjet_qqtst_128x256_128x6_2x2_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_TNT": ("tensor cores", "MXFP8"),
    "nvjet_sm100_ootst_128x128_256x7_4x1_2cta_v_bx_Avec16UE4M3_Bvec16UE4M3_": ("tensor cores", "NVFP4"),
    "nvjet_sm103_oohsh_128x128_256x7_2x2_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT": ("tensor cores", "NVFP4"),
    "cutlass3x_sm120_bstensorop_s16864gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_128x128x256_1x1x1_0_tnn"
    "_align32_o_vs16_bias_bf16_relu": ("tensor cores", "FP4"),
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0": (
        "tensor cores",
        "16 bits",
    ),
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::half_t,"
    " Flash_kernel_traits<128, 128, 64, 4, cutlass::half_t> >": ("tensor cores", "float16"),
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, (bool)0,"
    " (bool)0, cutlass::bfloat16_t>>": ("tensor cores", "bfloat16"),
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80": ("tensor cores", "bfloat16"),
    "ampere_sgemm_128x64_tn": ("CUDA cores", "float32"),
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)": ("CUDA cores", "float32"),
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4"
    "_execute_kernel__5x_cublas": ("CUDA cores", "float32"),
    "triton_tem_fused_mm_0": ("Triton product", ""),
    "triton_poi_fused_cat_3": ("other", ""),
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::bfloat16_copy_kernel_cuda"
    "(at::TensorIteratorBase &)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)": (
        "cast or copy",
        "bfloat16",
    ),
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::float8_copy_kernel_cuda"
    "(at::TensorIteratorBase &)::[lambda(float)": ("cast or copy", "FP8"),
    "Memcpy HtoD (Pageable -> Device)": ("copy", ""),
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)": (
        "communication",
        "bfloat16",
    ),
}


@pytest.fixture(scope="module")
def script():
    return recipe_scripts.load("which_kernel")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:40])
def test_real_names_are_decoded(script, name):
    assert script.classify(name) == NAMES[name]


def test_the_table_of_the_page_says_what_the_function_says(script):
    rows = re.findall(r"^\| (`.*`) \| (.*), (\w+) \|$", rules.markdown(rules.read_page(PAGE)), re.MULTILINE)
    assert len(rows) == 7
    for parts, unit, kind in rows:
        for part in re.findall(r"`([^`]*)`", parts):
            said = script.classify(part + "_")
            assert said in {(unit, kind), (unit, "FP8" if kind == "MXFP8" else kind)}, part


def test_it_runs_as_it_stands_and_lists_by_time(tmp_path):
    done = recipe_scripts.run_as_shown("which_kernel", tmp_path, last_line_only=True)
    *rows, last = done.stdout.splitlines()
    shares = [float(re.match(r" *([\d.]+)% +\d+x  ", row)[1]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert 50 < sum(shares) <= 100.5
    if not torch.cuda.is_available():
        assert last == "No GPU here: these are operations, not kernels"
        assert "aten::mm" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU lists kernels, not operations")
def test_the_casts_of_autocast_are_recorded(script):
    assert script.classify("aten::copy_")[0] == "cast or copy"
    assert "aten::copy_" in {name for name, *_ in script.record(script.make_step())}


def test_the_warm_up_is_not_recorded(script):
    calls = []

    def step():
        calls.append(1)
        torch.ones(4) + 1

    (counted,) = [count for name, count, _ in script.record(step) if name == "aten::add"]
    assert (len(calls), counted) == (4, 1)


def test_onednn_names_its_implementation():
    code = """
import torch
with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
    torch.nn.functional.gelu(torch.randn(128, 256))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch without oneDNN")
    assert re.search(r"onednn_verbose,.*exec,cpu,eltwise,\w+:?\w*,.*f32", done.stdout)


def test_the_log_of_generated_code_exists():
    assert "output_code" in torch._logging._internal.log_registry.artifact_names


@pytest.mark.gpu
def test_a_gpu_multiplies_bfloat16_on_tensor_cores(script):
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("no bfloat16 tensor cores")
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    names = [name for name, *_ in script.record(lambda: a @ a)]
    assert ("tensor cores", "bfloat16") in {script.classify(name) for name in names}, names


@pytest.mark.gpu
def test_a_gpu_with_fp8_says_so(script):
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no FP8 tensor cores")
    a = torch.randn(2048, 2048, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    step = lambda: torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: E731
    names = [name for name, *_ in script.record(step)]
    assert ("tensor cores", "FP8") in {script.classify(name) for name in names}, names
