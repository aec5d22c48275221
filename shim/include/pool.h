/* Stream-ordered memory: a pool is charged what it has reserved from the device, whatever of it is in use. */
#ifndef VGPU_POOL_H
#define VGPU_POOL_H

/* Reads the pools of a card again; before a refusal also lets them give back what they do not use. */
void pool_refresh(int card);
void pool_make_room(int card);

/* Memory of a pool may have been freed: its reservation is read again when work has been waited for. */
void pool_freed(void);

/* Work has been waited for, so pools may have shrunk. */
void pool_settled(void);

/* All contexts of a card are gone, and its pools with them. */
void pool_forget(int card);

#endif
