// The storage of the tab. Where the browser refuses it to the page, what is kept lasts until the page is left.

type TabStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

export const tab_storage: TabStorage = ofBrowser() ?? inMemory()

function ofBrowser(): TabStorage | null {
  try {
    // With cookies blocked the first throws; in some views of other programs it is null.
    const storage = sessionStorage
    storage.getItem('')
    return storage
  } catch {
    return null
  }
}

function inMemory(): TabStorage {
  const kept = new Map<string, string>()
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  }
}

/** Null where the browser refuses it: a duplicate of this tab then has nothing of it either. */
export function channelOfCopies(name: string): BroadcastChannel | null {
  try {
    return new BroadcastChannel(name)
  } catch {
    return null
  }
}
