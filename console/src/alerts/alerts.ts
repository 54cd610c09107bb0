import { effect, signal } from '@preact/signals'
import { createStore, delMany, entries, type UseStore, update } from 'idb-keyval'
import type { Conversation } from '#proto/messaging/v1/messaging_pb.js'
import { createChime } from '../../../browser/chat/chime.ts'
import { isUnread, visitorName } from '../inbox/conversation-record.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { localStore } from '../storages.ts'
import { millisecondsOf } from '../time.ts'

/** What an alert says, and the conversation that it opens. */
interface Alert {
  conversationId: string
  title: string
  text: string
}

const enabledKey = 'service.console.alerts'
const textMaxLength = 160

/** Why the browser shows no notifications. */
export const alertProblems = {
  blocked: {
    title: 'Notifications are blocked',
    text: 'Allow notifications for this page in the settings of your browser, then try again.',
  },
  unsupported: {
    title: 'This browser cannot show notifications',
    text: 'Browsers of phones show none for pages like this one. Use the console on a computer to be notified.',
  },
}

export type Alerts = ReturnType<typeof createAlerts>

/**
 * Alerts the operator of new messages of visitors with a sound and a desktop notification, once per
 * message over all tabs. No notification appears while a tab of the console has the focus.
 */
export function createAlerts(inbox: Inbox, owner: string, focus: TabFocus, open: (conversationId: string) => void) {
  const claim = createClaims(owner)
  const chime = createChime(0.18)
  const permission = 'Notification' in window ? Notification.permission : 'denied'
  const isEnabled = signal(localStore.getItem(enabledKey) === 'on' && permission !== 'denied')
  /** Latest sequence of each conversation that this tab has handled. */
  const handled = new Map<string, number>()
  /** Messages up to this time existed when the first list was loaded, and cause no alert. */
  let since: number | undefined

  async function alert({ conversationId, title, text }: Alert, sequence: number) {
    const isOn = isEnabled.peek()
    // Claimed also while alerts are off: a slower tab could otherwise alert when they are switched on.
    // Without storage, for example in a private window, each tab alerts on its own.
    const isFirst = await claim(conversationId, sequence).catch(() => true)
    if (!isFirst || !isOn) return
    const { isFocused, isShown } = await focus.query(conversationId)
    if (!isShown) chime.play()
    if (isFocused) return
    try {
      const notification = new Notification(title, { body: text, tag: conversationId, icon: '/console/favicon.svg' })
      notification.onclick = () => {
        window.focus()
        open(conversationId)
        notification.close()
      }
    } catch {
      set(false)
    }
  }

  function set(isOn: boolean) {
    localStore.setItem(enabledKey, isOn ? 'on' : 'off')
    isEnabled.value = isOn
  }

  function check(all: ReadonlyMap<string, Conversation>) {
    const isFirst = since === undefined
    let latest = since ?? 0
    for (const conversation of all.values()) {
      const { conversationId, lastMessage, lastMessageAt, lastSequence } = conversation
      // Without a message, the last entry is a form.
      const form = { sequence: lastSequence, createdAt: lastMessageAt, body: 'Submitted a form' }
      const { sequence, createdAt, body } = lastMessage ?? form
      const at = millisecondsOf(createdAt)
      if (isFirst) latest = Math.max(latest, at)
      const isNew = sequence > (handled.get(conversationId) ?? 0)
      handled.set(conversationId, sequence)
      if (isFirst || !isNew || at <= latest || !isUnread(conversation)) continue
      const title = `New message from ${visitorName(conversation)}`
      void alert({ conversationId, title, text: body.slice(0, textMaxLength) }, sequence)
    }
    since = latest
  }

  const stop = effect(() => {
    const all = inbox.conversations.value
    if (inbox.isListed.value) check(all)
  })

  return {
    isEnabled,
    /** Switches alerts on or off in all tabs. Returns the reason if the browser does not allow them. */
    async toggle(): Promise<'blocked' | 'unsupported' | undefined> {
      const isOn = !isEnabled.value
      if (isOn && !canNotify()) return 'unsupported'
      if (isOn && (await Notification.requestPermission()) !== 'granted') return 'blocked'
      set(isOn)
      // Lets the operator hear the sound, and allows the page to play it later.
      if (isOn) chime.play()
      return undefined
    },
    /** Applies a change of the setting in another tab. */
    onStorage({ key, newValue }: Pick<StorageEvent, 'key' | 'newValue'>) {
      if (key === enabledKey) isEnabled.value = newValue === 'on'
    },
    stop() {
      stop()
      chime.dispose()
    },
  }
}

/** Returns false if the browser shows only notifications of service workers, as on Android. */
function canNotify() {
  try {
    // Without permission, nothing is shown.
    const shown = new Notification('Notifications are on', { tag: 'service.console', silent: true })
    shown.close()
    return true
  } catch {
    return false
  }
}

interface Claim {
  sequence: number
  at: number
}

const keptMs = 7 * 86_400_000

/** Stores which message of each conversation a tab has claimed. Transactions of all tabs run one by one. */
function createClaims(owner: string) {
  const store = createStore(`service.console.alerts ${owner}`, 'conversations')
  removeOld(store, Date.now() - keptMs).catch(() => {})

  /**
   * Returns true for the first caller per message, over all tabs, unless a later message was claimed.
   * Rejects if the storage fails.
   */
  return async (conversationId: string, sequence: number) => {
    let isFirst = false
    const claim = (found?: Claim) => {
      isFirst = !found || found.sequence < sequence
      return found && !isFirst ? found : { sequence, at: Date.now() }
    }
    await update(conversationId, claim, store)
    return isFirst
  }
}

async function removeOld(store: UseStore, before: number) {
  const old = (await entries<string, Claim>(store)).flatMap(([id, { at }]) => (at < before ? [id] : []))
  await delMany(old, store)
}

const prefix = 'service.console.focus '

/**
 * Tells the other tabs which conversation this tab shows while it has the focus. The browser
 * releases the lock of a tab that closes or crashes. On http pages there are no locks. `query` then
 * checks only this tab.
 */
export function createTabFocus(locks: LockManager | undefined, page: Document, window: EventTarget) {
  let shown = ''
  let release = () => {}

  function update() {
    release()
    if (!page.hasFocus() || page.hidden) return
    const released = Promise.withResolvers<void>()
    release = released.resolve
    // Without storage, the browser refuses locks, and this tab counts alone.
    locks?.request(`${prefix}${shown}`, { mode: 'shared' }, () => released.promise).catch(() => {})
  }

  const stopped = new AbortController()
  for (const name of ['focus', 'blur']) window.addEventListener(name, update, stopped)
  page.addEventListener('visibilitychange', update, stopped)

  return {
    show(conversationId: string) {
      shown = conversationId
      update()
    },
    /** Returns whether a tab of the console has the focus, and whether that tab shows the conversation. */
    async query(conversationId: string): Promise<{ isFocused: boolean; isShown: boolean }> {
      const found = await locks?.query().catch(() => undefined)
      if (!found) return { isFocused: page.hasFocus(), isShown: page.hasFocus() && shown === conversationId }
      const held = found.held?.map(({ name = '' }) => name) ?? []
      return {
        isFocused: held.some((name) => name.startsWith(prefix)),
        isShown: held.includes(`${prefix}${conversationId}`),
      }
    },
    stop() {
      stopped.abort()
      release()
    },
  }
}

export type TabFocus = ReturnType<typeof createTabFocus>
