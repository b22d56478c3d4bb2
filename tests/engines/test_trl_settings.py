"""What the TRL engine refuses, each in one line that says what to do."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="trl is not installed: pip install 'taspo-bench[trl]'")

from taspo_bench.config import CellConfig
from taspo_bench.engines.trl_settings import SETTLED, check, check_installed, rows_per_step
from taspo_bench.errors import InputError


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("top_entropy_quantile", 0.2, "1.0"),
        ("importance_sampling_level", "sequence", "token"),
        ("loss_type", "grpo", "dapo or cispo"),
        ("mask_truncated_completions", True, "False"),
        ("off_policy_mask_threshold", 0.5, "None"),
        ("use_adaptive_entropy", True, "False"),
    ],
)
def test_options_that_a_weighted_mask_makes_wrong_are_refused(key, value, right):
    with pytest.raises(InputError, match=rf"trl\.{key}={value}: .*; use {right}$"):
        check(CellConfig(engine="trl", trl={key: value}), 1)
    check(CellConfig(engine="trl", trl={"top_entropy_quantile": 1, "loss_type": "cispo"}), 1)


@pytest.mark.parametrize("key", sorted(SETTLED))
def test_an_option_that_follows_from_a_setting_of_the_cell_is_refused_with_that_setting(key):
    with pytest.raises(InputError, match=rf"trl\.{key}=1: this follows from {SETTLED[key]}"):
        check(CellConfig(engine="trl", trl={key: 1}), 1)


def test_what_the_engine_settles_is_refused():
    with pytest.raises(InputError, match=r"trl\.temperature=2: the engine settles this"):
        check(CellConfig(engine="trl", trl={"temperature": 2}), 1)


def test_a_misspelt_option_is_refused_with_the_close_one():
    with pytest.raises(InputError, match=r"epsilon_hihg.*epsilon_high"):
        check(CellConfig(engine="trl", trl={"epsilon_hihg": 0.3}), 1)


def test_a_version_that_was_not_tested_is_refused(tmp_path, monkeypatch):
    older = tmp_path / "trl-0.20.0.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: trl\nVersion: 0.20.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"trl 0\.20\.0 is installed, tested is trl>=.*pip install"):
        check_installed()


def test_episodes_that_do_not_divide_among_the_processes_are_refused():
    with pytest.raises(InputError, match="2 tasks x 4 rollouts in 1 minibatches on 3 processes"):
        check(CellConfig(engine="trl", tasks_per_update=2, group_size=4), 3)


@pytest.mark.parametrize("given", [3, 0, "four"])
def test_rows_of_a_step_must_divide_the_share_of_a_process(given):
    with pytest.raises(InputError, match=f"per_device_train_batch_size={given}: it must divide the 4 episodes"):
        rows_per_step(
            CellConfig(engine="trl", tasks_per_update=2, group_size=4, trl={"per_device_train_batch_size": given}), 2
        )


def test_a_dual_clip_inside_the_clip_range_is_refused():
    with pytest.raises(InputError, match=r"dual_clip=1\.1: .*above 1 \+ clip = 1\.2"):
        check(CellConfig(engine="trl", dual_clip=1.1), 1)


def test_the_lone_process_of_a_launch_for_processors_is_refused(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(InputError, match=r"starts a single process; .*--multi_gpu --num_processes N"):
        check(CellConfig(engine="trl"), 1)
