import { effect, type ReadonlySignal, signal } from '@preact/signals'
import type { Conversation } from '#proto/messaging/v1/messaging_pb.js'
import { isUnread, visitorName } from '../inbox/conversation-record.ts'
import { millisecondsOf } from '../time.ts'
import type { AlertedMessages } from './alerted-messages.ts'
import type { TabFocus } from './tab-focus.ts'

/** What an alert says, and the conversation that it opens. */
export interface Alert {
  conversationId: string
  title: string
  text: string
}

interface AlertDeps {
  conversations: ReadonlySignal<ReadonlyMap<string, Conversation>>
  /** Whether the first list of conversations has been loaded. */
  isReady: ReadonlySignal<boolean>
  storage: Pick<Storage, 'getItem' | 'setItem'>
  messages: AlertedMessages
  focus: Pick<TabFocus, 'query'>
  /** Shows a desktop notification. */
  notify(alert: Alert): void
  playSound(): void
  /** Asks the operator for the browser's permission. */
  requestPermission(): Promise<NotificationPermission | 'unsupported'>
  permission: () => NotificationPermission
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
export function createAlerts(deps: AlertDeps) {
  const { conversations, isReady, storage, messages, focus, notify, playSound } = deps
  const isEnabled = signal(storage.getItem(enabledKey) === 'on' && deps.permission() !== 'denied')
  /** Latest sequence of each conversation that this tab has handled. */
  const handled = new Map<string, number>()
  /**
   * Messages up to this time existed when the console loaded its first list, so they cause no
   * alert. Undefined before the first list.
   */
  let since: number | undefined

  async function alert(found: Alert, sequence: number) {
    const isOn = isEnabled.peek()
    // Claim the message even while alerts are off. Otherwise, if alerts are switched on now, a
    // slower tab could show an alert for this message.
    if (!(await messages.claim(found.conversationId, sequence)) || !isOn) return
    const { isFocused, isShown } = await focus.query(found.conversationId)
    if (!isShown) playSound()
    if (isFocused) return
    try {
      notify(found)
    } catch {
      set(false)
    }
  }

  function set(isOn: boolean) {
    storage.setItem(enabledKey, isOn ? 'on' : 'off')
    isEnabled.value = isOn
  }

  function check(all: ReadonlyMap<string, Conversation>) {
    const isFirst = since === undefined
    let latest = since ?? 0
    for (const conversation of all.values()) {
      const { conversationId, lastMessage, lastMessageAt, lastSequence } = conversation
      // Without a message, the last entry is a form.
      const { sequence, createdAt, body } = lastMessage ?? {
        sequence: lastSequence,
        createdAt: lastMessageAt,
        body: 'Submitted a form',
      }
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
    const all = conversations.value
    if (isReady.value) check(all)
  })

  return {
    isEnabled,
    /** Switches alerts on or off in all tabs. Returns the reason if the browser does not allow them. */
    async toggle(): Promise<'blocked' | 'unsupported' | undefined> {
      const isOn = !isEnabled.value
      const answer = isOn ? await deps.requestPermission() : 'granted'
      if (answer !== 'granted') return answer === 'unsupported' ? answer : 'blocked'
      set(isOn)
      // Lets the operator hear the sound, and allows the page to play it later.
      if (isOn) playSound()
      return undefined
    },
    /** Applies a change of the setting in another tab. */
    onStorage({ key, newValue }: Pick<StorageEvent, 'key' | 'newValue'>) {
      if (key === enabledKey) isEnabled.value = newValue === 'on'
    },
    stop,
  }
}
