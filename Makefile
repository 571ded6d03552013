# Two commands start everything: `make demo` and `make test`. Both set .venv up first.
# PYTHON names the Python to use (3.10 to 3.13): make PYTHON=python3.12 test
# ROS=kilted takes the wheels of that distribution, in an environment of its own.
export PYTHON ROS

OTHER := $(filter-out jazzy,$(ROS))
VENV := .venv$(if $(OTHER),-$(OTHER))
LEROBOT := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/adahi_ros/lerobot/venv
WITH_LEROBOT := test/policies/remote/test_lerobot_target.py test/system/test_lerobot_drive.py \
    adahi_lab/test/datasets/test_filmed_dataset.py test/bags/test_rerun_recording.py test/cli/test_top.py
TESTS := $(if $(OTHER),test/nodes test/system,test)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-lab test-lerobot faults docs lint closure constraints clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup:  ## make .venv with everything: ROS 2 unless it is sourced, adahi_msgs, torch, test tools
	@tools/set_up

demo:  ## balance a ball over DDS, in three processes; the link is cut for a second in each episode
	@tools/set_up demo
	@$(VENV)/bin/adahi demo ball --report --cut-s 1

test: setup  ## lint, types, tests of the product and a row of each paper; ROS=kilted: what needs ROS, on its wheels
	@$(MAKE) --no-print-directory --jobs 2 $(if $(OTHER),,lint) faults
	$(VENV)/bin/pytest -n $$((2 * $$(nproc))) --dist worksteal --ignore=test/faults --ignore=test/server/ray \
	    --ignore=test/controllers $(TESTS)
	$(if $(OTHER),,$(VENV)/bin/pytest -n $$(nproc) -m smoke adahi_lab/test/papers)

test-lab: setup  ## the other tests of adahi_lab
	$(VENV)/bin/pytest -n $$(nproc) --dist worksteal -m "not smoke" adahi_lab/test

test-lerobot: setup  ## the tests with LeRobot 0.6.1, in an environment in your cache (Python 3.12; gigabytes, once), and with 0.4.4
	@tools/set_up lerobot
	PYTHONPATH=$(CURDIR):$(CURDIR)/adahi_lab $(LEROBOT)/bin/python -m pytest -n $$(nproc) $(WITH_LEROBOT)
	@if older=$$($(VENV)/bin/python -m adahi_lab.peers.environments lerobot_grpc); then \
	    PYTHONPATH=$(CURDIR):$$older $(VENV)/bin/python -m pytest -n $$(nproc) $(firstword $(WITH_LEROBOT)); \
	else echo "the tests with LeRobot 0.4.4 are not run: it cannot be had here"; fi

faults: setup  ## the tests that need control steps in time, or Ray: before the others, with little beside them
	$(VENV)/bin/pytest -n $$(nproc) --dist loadfile test/faults test/controllers $(if $(OTHER),,test/server/ray)

docs: setup  ## build the documentation into build/docs; warnings are errors
	$(VENV)/bin/pip install --quiet --constraint requirements/constraints.txt --requirement requirements/docs.txt
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

lint: setup  ## ruff, mypy and plain English
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@if $(VENV)/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then $(VENV)/bin/mypy; \
	else echo "types are not checked: NumPy for Python 3.10 has others"; fi
	$(VENV)/bin/python tools/plain_english.py

closure: setup  ## list what robot and verifier load of this package with the method best: lines of code
	.venv/bin/python tools/count_lines.py --configured adahi_lab/config/best/ball_instructed.yaml
	.venv/bin/python tools/count_lines.py --configured adahi_lab/config/best/ball_instructed.yaml --node target_verifier

constraints: setup  ## resolve requirements/constraints.txt again, for all Python versions
	.venv/bin/pip install --quiet uv
	cat requirements/robot.txt requirements/demo.txt requirements/runtime.txt requirements/remote_targets.txt requirements/tune.txt \
	    requirements/metrics.txt requirements/rerun.txt requirements/ray.txt requirements/dev.txt requirements/docs.txt requirements/ros.txt | \
	    .venv/bin/uv pip compile --universal --python-version 3.10 --upgrade --no-annotate \
	    --custom-compile-command "make constraints" --no-emit-index-url -o requirements/constraints.txt -

clean:  ## remove .venv and everything built
	rm -rf .venv .venv-* build install log *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
