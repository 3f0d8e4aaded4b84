# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's own build system builds the module, see Kbuild. Every target that runs
# the module does so in a virtual machine, see selftests/harness/vm --help.

KDIR ?= /lib/modules/$(shell uname -r)/build
# Make it absolute once, because the makes that install have folders of their own.
override DESTDIR := $(if $(DESTDIR),$(shell realpath -ms -- "$(DESTDIR)"))
# The kernel's build system, for the kernel in KDIR.
KBUILD = MAKE="$(MAKE)" DESTDIR="$(DESTDIR)" tools/packaging/kbuild "$(KDIR)"
VM := selftests/harness/vm
KERNEL ?=
TEST ?= *
# Recipes take these from the environment, because their values may have quotes. They say "exec",
# so that the program gets the signal that make sends to its child.
export KERNEL TEST

all: modules ## the module for the kernel in KDIR (default: the running one)

modules: ## the same
	+$(KBUILD) modules

tools: ## tools/esp, the command, tools/run, its library, and tools/am, the library, its name server and am
	$(MAKE) -C tools/esp
	$(MAKE) -C tools/run
	$(MAKE) -C tools/am

install: ## install module, command, libraries, manual pages, modprobe's alias, systemd's unit (DESTDIR=)
	+$(KBUILD) modules_install
	depmod $(if $(DESTDIR),-b "$(DESTDIR)") \
		"$$(awk -F'"' '/UTS_RELEASE/ { print $$2 }' "$(KDIR)/include/generated/utsrelease.h")"
	$(MAKE) -C tools/esp install DESTDIR="$(DESTDIR)"
	$(MAKE) -C tools/run install DESTDIR="$(DESTDIR)"
	$(MAKE) -C tools/trace install DESTDIR="$(DESTDIR)"
	$(MAKE) -C tools/am install DESTDIR="$(DESTDIR)"
	install -D -m 644 tools/packaging/modprobe.d/esp.conf "$(DESTDIR)/lib/modprobe.d/esp.conf"
	install -D -m 644 tools/packaging/systemd/esp@.service "$(DESTDIR)/lib/systemd/system/esp@.service"

# With -j, too, "make clean modules tools install" makes these goals in this order.
all modules tools: | $(filter clean,$(MAKECMDGOALS))
install: | $(filter clean all modules tools,$(MAKECMDGOALS))

demo: ## a demonstration in User-Mode Linux, from nothing
	@$(VM) run uml --pin -- selftests/net/demo.sh
	@$(VM) run uml-virtual -- selftests/net/demo-incast.sh

check: ## tests (TEST=glob KERNEL=uml,6.1,… select)
	@exec $(VM) check "TEST=$$TEST" "KERNEL=$$KERNEL"

check-long: ## all tests, the long ones too
	@exec $(VM) check "TEST=$$TEST" "KERNEL=$$KERNEL" long

coverage: ## which lines and branches of the module the tests run (15 minutes)
	@exec $(VM) coverage "TEST=$$TEST"

fuzz: ## fuzzers, with new seeds until time is over (SECONDS=600)
	@selftests/fuzz/fuzz.sh $(SECONDS)

mutants: ## bugs planted in the module: a test must catch each (TEST=glob; 20 minutes)
	@exec selftests/mutants/mutants.sh "$$TEST"

model: ## the models of the flow control, checked by spin (15 minutes)
	@selftests/model/run.sh

model-report: ## what faults cost messages, predicted and measured: all of performability.rst's figures (an hour)
	@selftests/bench/performability-report.sh

sim-report: ## the data centre, simulated: every figure and table of datacentre.rst
	@selftests/bench/sim-report.sh

bench: ## ESP beside TCP and others, as figures and pictures (an hour and a half)
	@selftests/bench/bench-speed.sh
	@selftests/bench/bench-programs.sh
	@selftests/bench/bench-incast.sh
	@selftests/bench/bench-fabric.sh
	@selftests/bench/bench-mpi.sh
	@selftests/bench/bench-am.sh

vm: ## a root shell in a guest with the module (KERNEL=uml, uml-debug, uml-virtual, 6.1, 6.12, 7)
	@$(VM) shell $(or $(KERNEL),uml)

uml: ## a root shell in User-Mode Linux (its kernel takes some minutes, once)
	@$(VM) shell uml

layout: ## where the fields of a socket are in memory, with its cache lines
	@$(VM) modules 6.12 && pahole -C esp_opt build/6.12/esp.ko

lint: ## checkpatch and sparse
	@selftests/lint/lint.sh

clean: ## remove what was built (kernels stay in the cache)
	rm -rf build
	find . -path ./.git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o \
		-name '.*.cmd' -o -name '.*.o.d' -o -name modules.order -o -name Module.symvers \) -exec rm {} +
	[ ! -e tools/esp/Makefile ] || $(MAKE) -C tools/esp clean
	[ ! -e tools/run/Makefile ] || $(MAKE) -C tools/run clean
	[ ! -e tools/btl_esp/Makefile ] || $(MAKE) -C tools/btl_esp clean
	[ ! -e tools/performability/Makefile ] || $(MAKE) -C tools/performability clean
	[ ! -e tools/am/Makefile ] || $(MAKE) -C tools/am clean
	[ ! -e tools/sim/Makefile ] || $(MAKE) -C tools/sim clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

.PHONY: all modules tools install demo check check-long coverage fuzz mutants model model-report sim-report bench vm uml layout lint clean help
