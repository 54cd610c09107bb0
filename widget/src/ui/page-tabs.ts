import type { Tabs } from '../platform.ts'

/** The tabs of this origin: a lock says who leads them, a channel carries what is told. */
export const pageTabs: Tabs = {
  join(name, onLead, onMessage) {
    const { locks } = navigator
    if (!locks || typeof BroadcastChannel !== 'function') return undefined
    const channel = new BroadcastChannel(name)
    channel.onmessage = ({ data }) => onMessage(data)
    const waiting = new AbortController()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    // Rejects when the wait is aborted, and where the page may not use locks: then this tab never leads.
    locks
      .request(name, { signal: waiting.signal }, () => {
        onLead()
        return held
      })
      .catch(() => {})
    return {
      post: (message) => channel.postMessage(message),
      leave() {
        waiting.abort()
        release()
        channel.close()
      },
    }
  },
}
