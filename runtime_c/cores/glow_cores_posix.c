/* SPDX-License-Identifier: MIT-0 */
/* glow_cores.h by POSIX threads, which wait for work in a loop for a while before they sleep. Models that run in several
 * threads take turns, layer by layer. GLOW_CORES is the number of cores, if it is not that of the machine. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "glow_cores.h"

#if !defined(GLOW_CORES_SERIAL) && defined(_WIN32)
uint32_t glow_cores_count(void) { return 1u; }

void glow_cores_start(glow_work_t work, const void *context) {
  (void)work;
  (void)context;
}

void glow_cores_wait(void) {}
#elif !defined(GLOW_CORES_SERIAL)
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#define MOST 8u        /* cores */
#define LOOKS 20000u   /* for work, before a thread sleeps */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER; /* from start to wait */
static pthread_mutex_t asleep = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awake = PTHREAD_COND_INITIALIZER;
static glow_work_t now;
static const void *given;
static uint32_t count = 1u;
static atomic_uint round_now, left, sleepers;

static void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

static void *work_on(void *core) {
  const uint32_t own = (uint32_t)(uintptr_t)core;
  for (unsigned next = 1u;; next++) {
    for (unsigned look = 0u; look < LOOKS && atomic_load(&round_now) != next; look++) {
      pause_a_moment();
    }
    if (atomic_load(&round_now) != next) {
      pthread_mutex_lock(&asleep);
      atomic_fetch_add(&sleepers, 1u);
      while (atomic_load(&round_now) != next) {
        pthread_cond_wait(&awake, &asleep);
      }
      atomic_fetch_sub(&sleepers, 1u);
      pthread_mutex_unlock(&asleep);
    }
    now(given, own);
    atomic_fetch_sub(&left, 1u);
  }
  return NULL;
}

static void create(void) {
#ifdef GLOW_CORES
  const long online = GLOW_CORES;
#else
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  while (count < MOST && (long)count < online) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_on, (void *)(uintptr_t)count) != 0) {
      break;
    }
    pthread_detach(thread);
    count++;
  }
}

uint32_t glow_cores_count(void) {
  pthread_once(&once, create);
  return count;
}

void glow_cores_start(glow_work_t work, const void *context) {
  pthread_once(&once, create);
  pthread_mutex_lock(&in_use);
  now = work;
  given = context;
  atomic_store(&left, count - 1u);
  atomic_fetch_add(&round_now, 1u);
  if (atomic_load(&sleepers) > 0u) {
    pthread_mutex_lock(&asleep);
    pthread_cond_broadcast(&awake);
    pthread_mutex_unlock(&asleep);
  }
}

void glow_cores_wait(void) {
  for (unsigned look = 0u; atomic_load(&left) > 0u; look++) {
    if (look < LOOKS) {
      pause_a_moment();
    } else {
      sched_yield();
    }
  }
  pthread_mutex_unlock(&in_use);
}
#endif
