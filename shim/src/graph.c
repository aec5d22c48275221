#include "graph.h"

#include "account.h"
#include "card.h"
#include "claim.h"
#include "core.h"
#include "core_boundary.h"
#include "driver.h"
#include "measure.h"
#include "settings.h"

static uint64_t charged[REGION_CARDS];
static int captures, memory_used; /* set at the first capture, at the first allocation node */

static uint64_t attribute(int card, int which) {
  uint64_t value = 0;
  CUdevice device = card_device(card);
  if (device < 0 || !HAVE(cuDeviceGetGraphMemAttribute)) return 0;
  return NEXT(cuDeviceGetGraphMemAttribute)(device, which, &value) == CUDA_SUCCESS ? value : 0;
}

static void follow(int card, uint64_t claimed) {
  uint64_t reserved = attribute(card, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
  uint64_t before = __atomic_exchange_n(&charged[card], reserved, __ATOMIC_RELAXED);
  if (reserved > before + claimed)
    claim_add(card, reserved - before - claimed);
  else
    claim_return(card, before + claimed - reserved);
}

void graph_refresh(int card) {
  if (__atomic_load_n(&memory_used, __ATOMIC_RELAXED)) follow(card, 0);
}

void graph_make_room(int card) {
  CUdevice device = card_device(card);
  if (!__atomic_load_n(&charged[card], __ATOMIC_RELAXED) || device < 0) return;
  NEXT(cuDeviceGraphMemTrim)(device);
  follow(card, 0);
}

void graph_forget(int card) {
  uint64_t before = __atomic_exchange_n(&charged[card], 0, __ATOMIC_RELAXED);
  if (before) claim_return(card, before);
}

bool graph_captures(void) { return __atomic_load_n(&captures, __ATOMIC_RELAXED); }

bool graph_capturing(CUstream stream, bool per_thread, CUgraph *graph) {
  *graph = NULL;
  if (!__atomic_load_n(&captures, __ATOMIC_RELAXED)) return false;
  int status = 0;
  CUresult result = per_thread ? NEXT(cuStreamIsCapturing_ptsz)(stream, &status) : NEXT(cuStreamIsCapturing)(stream, &status);
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return false;
  if (stream && HAVE(cuStreamGetCaptureInfo_v2)) NEXT(cuStreamGetCaptureInfo_v2)(stream, &status, NULL, graph, NULL, NULL);
  return true;
}

void graph_recorded(CUgraph graph, int card, uint64_t bytes) {
  __atomic_store_n(&memory_used, 1, __ATOMIC_RELAXED);
  if (graph) ledger_grow(LEDGER_GRAPH, (uint64_t)(uintptr_t)graph, card, account_size(bytes));
}

static void node_added(CUgraph graph, const struct cu_alloc_node_parameters *parameters) {
  const struct cu_location *location = &parameters->pool.location;
  if (!settings_get()->active || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return;
  int card = card_of_device(location->id);
  if (card != CARD_NONE) graph_recorded(graph, card, parameters->bytes);
}

static void instantiated(CUgraphExec exec, CUgraph graph) {
  struct ledger_entry entry;
  if (!__atomic_load_n(&memory_used, __ATOMIC_RELAXED)) return;
  if (!ledger_get(LEDGER_GRAPH, (uint64_t)(uintptr_t)graph, &entry)) return;
  ledger_put((struct ledger_entry){.key = (uint64_t)(uintptr_t)exec, .kind = LEDGER_EXEC, .bytes = entry.bytes, .card = entry.card});
  follow(entry.card, 0);
}

/* The device gets a graph's memory at its first launch or upload, and keeps it for the next graphs. */
static bool begin(CUgraphExec exec, CUstream stream, bool per_thread, const char *call, struct ledger_entry *entry, uint64_t *claimed) {
  CUgraph unused;
  *claimed = 0;
  entry->card = CARD_NONE;
  if (__builtin_expect(!__atomic_load_n(&memory_used, __ATOMIC_RELAXED), 1)) return true;
  if (!ledger_get(LEDGER_EXEC, (uint64_t)(uintptr_t)exec, entry) || graph_capturing(stream, per_thread, &unused)) {
    entry->card = CARD_NONE;
    return true;
  }
  uint64_t there = attribute(entry->card, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
  if (!entry->link) there -= attribute(entry->card, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  *claimed = entry->bytes > there ? account_blocks(entry->bytes - there) : 0;
  return !*claimed || account_reserve(entry->card, *claimed, false, call);
}

static CUresult end(CUresult result, struct ledger_entry entry, uint64_t claimed) {
  if (entry.card == CARD_NONE) return result;
  claim_landed(entry.card, claimed);
  follow(entry.card, claimed);
  if (result == CUDA_SUCCESS && !entry.link) {
    entry.link = 1; /* launched before: its memory is among what is in use */
    ledger_put(entry);
  }
  return result;
}

static CUresult uploaded(CUgraphExec exec, CUstream stream, bool per_thread) {
  struct ledger_entry entry;
  uint64_t claimed;
  if (!begin(exec, stream, per_thread, "cuGraphUpload", &entry, &claimed)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = per_thread ? NEXT(cuGraphUpload_ptsz)(exec, stream) : NEXT(cuGraphUpload)(exec, stream);
  return end(result, entry, claimed);
}

static CUresult launched(CUgraphExec exec, CUstream stream, bool per_thread) {
  struct ledger_entry entry;
  uint64_t claimed;
  if (!begin(exec, stream, per_thread, "cuGraphLaunch", &entry, &claimed)) return CUDA_ERROR_OUT_OF_MEMORY;
  struct launch launch = {.limiter = NULL};
  core_graph(&launch, exec, stream, per_thread);
  CUresult result = per_thread ? NEXT(cuGraphLaunch_ptsz)(exec, stream) : NEXT(cuGraphLaunch)(exec, stream);
  core_after(&launch, result);
  return end(result, entry, claimed);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return launched(exec, stream, false); }

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return launched(exec, stream, true); }

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) { return uploaded(exec, stream, false); }

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return uploaded(exec, stream, true); }

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, struct cu_alloc_node_parameters *parameters) {
  CUresult result = NEXT(cuGraphAddMemAllocNode)(node, graph, after, count, parameters);
  if (result == CUDA_SUCCESS) node_added(graph, parameters);
  return result;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, struct cu_graph_node_parameters *parameters) {
  CUresult result = NEXT(cuGraphAddNode)(node, graph, after, count, parameters);
  if (result == CUDA_SUCCESS && parameters->kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC) node_added(graph, &parameters->alloc);
  return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           struct cu_graph_node_parameters *parameters) {
  CUresult result = NEXT(cuGraphAddNode_v2)(node, graph, after, edges, count, parameters);
  if (result == CUDA_SUCCESS && parameters->kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC) node_added(graph, &parameters->alloc);
  return result;
}

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           struct cu_graph_node_parameters *parameters) {
  CUresult result = NEXT(cuGraphAddNode_v3)(node, graph, after, edges, count, parameters);
  if (result == CUDA_SUCCESS && parameters->kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC) node_added(graph, &parameters->alloc);
  return result;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t size) {
  CUresult result = NEXT(cuGraphInstantiate)(exec, graph, failed, log, size);
  if (result == CUDA_SUCCESS) instantiated(*exec, graph);
  return result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t size) {
  CUresult result = NEXT(cuGraphInstantiate_v2)(exec, graph, failed, log, size);
  if (result == CUDA_SUCCESS) instantiated(*exec, graph);
  return result;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  CUresult result = NEXT(cuGraphInstantiateWithFlags)(exec, graph, flags);
  if (result == CUDA_SUCCESS) instantiated(*exec, graph);
  return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters) {
  CUresult result = NEXT(cuGraphInstantiateWithParams)(exec, graph, parameters);
  if (result == CUDA_SUCCESS) instantiated(*exec, graph);
  return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *parameters) {
  CUresult result = NEXT(cuGraphInstantiateWithParams_ptsz)(exec, graph, parameters);
  if (result == CUDA_SUCCESS) instantiated(*exec, graph);
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  struct ledger_entry entry;
  CUresult result = NEXT(cuGraphExecDestroy)(exec);
  if (result == CUDA_SUCCESS && ledger_take(LEDGER_EXEC, (uint64_t)(uintptr_t)exec, &entry)) follow(entry.card, 0);
  return result;
}

CUresult cuGraphDestroy(CUgraph graph) {
  struct ledger_entry entry;
  CUresult result = NEXT(cuGraphDestroy)(graph);
  if (result == CUDA_SUCCESS) ledger_take(LEDGER_GRAPH, (uint64_t)(uintptr_t)graph, &entry);
  return result;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CUresult result = NEXT(cuDeviceGraphMemTrim)(device);
  int card = settings_get()->active ? card_of_device(device) : CARD_NONE;
  if (card != CARD_NONE) graph_refresh(card);
  return result;
}

static void capture_begins(CUstream stream, bool per_thread) {
  core_boundary(stream, per_thread);
  __atomic_store_n(&captures, 1, __ATOMIC_RELAXED);
}

CUresult cuStreamBeginCapture(CUstream stream) {
  capture_begins(stream, false);
  return NEXT(cuStreamBeginCapture)(stream);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  capture_begins(stream, true);
  return NEXT(cuStreamBeginCapture_ptsz)(stream);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  capture_begins(stream, false);
  return NEXT(cuStreamBeginCapture_v2)(stream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  capture_begins(stream, true);
  return NEXT(cuStreamBeginCapture_v2_ptsz)(stream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t count, int mode) {
  capture_begins(stream, false);
  return NEXT(cuStreamBeginCaptureToGraph)(stream, graph, nodes, edges, count, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t count, int mode) {
  capture_begins(stream, true);
  return NEXT(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, nodes, edges, count, mode);
}
