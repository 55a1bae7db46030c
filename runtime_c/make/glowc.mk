# SPDX-License-Identifier: MIT-0
# glowc.mk: ONNX and TensorFlow Lite models as C sources of your Makefile project. GNU make 3.82 or newer.
#
#   GLOWC_MODELS := digits sine                 # models/digits.onnx, models/sine.tflite
#   GLOWC_FLAGS  := --board mps2-an386          # options of `glowc compile` for all models
#   include glowc.mk
#
#   CFLAGS += $(GLOWC_CFLAGS)
#   $(OBJS): | $(GLOWC_HDRS)                    # headers exist before the first compilation
#   firmware.elf: main.o $(GLOWC_SRCS:.c=.o)
#
# Reads (all but the first have a default)
#   GLOWC_MODELS       names of models; also the prefix of files and C functions
#   GLOWC              the compiler; `glowc` from PATH
#   GLOWC_FLAGS        options for every model; GLOWC_FLAGS_digits: more options for one
#   GLOWC_MODEL_DIR    where NAME.onnx or NAME.tflite is; `models`. With a NAME_test.npz beside it (inputs, one array per
#                      input, leading sample axis) the bundle gets test vectors
#   GLOWC_DIR          the bundle of NAME is written to $(GLOWC_DIR)/NAME; `build/models`
#
# Sets
#   GLOWC_SRCS         sources to compile and link; with --weights asm NAME_weights.S, with object NAME_weights.o among them
#   GLOWC_GOLDEN_SRCS  test vectors: for test firmware
#   GLOWC_HDRS         headers
#   GLOWC_CFLAGS       include path and what generated code needs: C11, no contracted floating point
#   GLOWC_CPPFLAGS     the include path alone, for C++ files
#   GLOWC_LDLIBS       libraries
#
# A bundle is written again when its model, its _test.npz, its options or glowc itself change, or when a file of it
# is missing; nothing else compiles. Without a glowc that says its version, bundles stay as they are. The stamp holds
# the options and that version, and is older than the files that it vouches for.

# The rules below are no goals: what stands first in the including Makefile is what `make` alone makes.
glowc_goal := $(.DEFAULT_GOAL)

GLOWC           ?= glowc
GLOWC_MODEL_DIR ?= models
GLOWC_DIR       ?= build/models

# What is said to the shell. cmd.exe, which make on Windows takes where it finds no other one, prints the quotes.
ifeq ($(shell echo "x"),"x")
glowc_path  = $(subst /,\,$1)
glowc_quiet := 2>nul
glowc_mkdir = if not exist "$(call glowc_path,$1)" mkdir "$(call glowc_path,$1)"
glowc_write = > "$(call glowc_path,$1)" echo $2& >> "$(call glowc_path,$1)" echo.$3
glowc_move  = move /y "$(call glowc_path,$1)" "$(call glowc_path,$2)" > nul
glowc_text  = type "$(call glowc_path,$1)" 2>nul
else
glowc_quiet := 2>/dev/null
glowc_mkdir = mkdir -p $1
glowc_write = printf '%s\n' '$(subst ','\'',$2)' '$3' > $1
glowc_move  = mv -f $1 $2
glowc_text  = cat $1 2>/dev/null
endif

# "glowc 0.1.0+1f2e3d4c": the digits change whenever anything that glowc writes may.
glowc_says    := $(shell $(GLOWC) --version $(glowc_quiet))
glowc_version := $(if $(filter glowc,$(firstword $(glowc_says))),$(wordlist 1,2,$(glowc_says)))

# Each takes the name of a model.
glowc_model  = $(firstword $(wildcard $(GLOWC_MODEL_DIR)/$1.onnx $(GLOWC_MODEL_DIR)/$1.tflite) $(GLOWC_MODEL_DIR)/$1.onnx)
glowc_npz    = $(wildcard $(GLOWC_MODEL_DIR)/$1_test.npz)
glowc_stamp  = $(GLOWC_DIR)/$1/bundle.stamp
glowc_asked  = $(GLOWC_FLAGS) $(GLOWC_FLAGS_$1)
glowc_end    = $(if $(filter asm --weights=asm,$(glowc_asked)),S,$(if $(filter object --weights=object,$(glowc_asked)),o,c))
glowc_srcs   = $(GLOWC_DIR)/$1/$1.c $(GLOWC_DIR)/$1/$1_weights.$(glowc_end)
glowc_golden = $(if $(call glowc_npz,$1),$(GLOWC_DIR)/$1/$1_golden.c)
glowc_hdrs   = $(GLOWC_DIR)/$1/$1.h $(GLOWC_DIR)/$1/$1_weights.h $(patsubst %.c,%.h,$(call glowc_golden,$1))
glowc_files  = $(glowc_srcs) $(glowc_golden) $(glowc_hdrs)
glowc_args   = $(strip --name $1 $(patsubst %,--golden %,$(call glowc_npz,$1)) $(glowc_asked) $(if $(filter --weights%,$(glowc_asked)),,--weights c))

# $(call glowc_same,A,B): not empty when the texts are equal.
glowc_same   = $(and $(findstring [$1],[$2]),$(findstring [$2],[$1]))
# What the stamp says; its version, which is last, is left out where glowc says none.
glowc_known  = $(if $(glowc_version),$1,$(strip $(subst glowc $(lastword $1),,$1)))
glowc_read   = $(call glowc_known,$(strip $(shell $(call glowc_text,$(call glowc_stamp,$1)))))
glowc_stale  = $(if $(and $(call glowc_same,$(glowc_read),$(strip $(glowc_args) $(glowc_version))),\
  $(call glowc_same,$(words $(glowc_files)),$(words $(wildcard $(glowc_files))))),,glowc-force)

GLOWC_SRCS        := $(foreach m,$(GLOWC_MODELS),$(call glowc_srcs,$m))
GLOWC_GOLDEN_SRCS := $(foreach m,$(GLOWC_MODELS),$(call glowc_golden,$m))
GLOWC_HDRS        := $(foreach m,$(GLOWC_MODELS),$(call glowc_hdrs,$m))
GLOWC_CPPFLAGS    := $(foreach m,$(GLOWC_MODELS),-I$(GLOWC_DIR)/$m)
GLOWC_CFLAGS      := -std=c11 -ffp-contract=off $(GLOWC_CPPFLAGS)
GLOWC_LDLIBS      := -lm
GLOWC_STAMPS      := $(foreach m,$(GLOWC_MODELS),$(call glowc_stamp,$m))

$(GLOWC_STAMPS): $(GLOWC_DIR)/%/bundle.stamp:
	@$(call glowc_mkdir,$(@D))
	@$(call glowc_write,$(@D)/.bundle.stamp,$(call glowc_args,$*),$(glowc_version))
	$(GLOWC) compile $(call glowc_model,$*) -o $(@D) $(call glowc_args,$*)
	@$(call glowc_move,$(@D)/.bundle.stamp,$@)

define glowc_rules
$(glowc_stamp): $(glowc_model) $(glowc_npz) $(glowc_stale)
$(glowc_files): $(glowc_stamp) ;
endef
$(foreach m,$(GLOWC_MODELS),$(eval $(call glowc_rules,$m)))

.PHONY: glowc-force

.DEFAULT_GOAL := $(glowc_goal)
