import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../client.ts'
import { createEmitter, type Handler } from '../events.ts'
import type { WidgetEventMap, WidgetMessage } from '../types.ts'
import { accentColors } from './color.ts'
import { element } from './elements.ts'
import { createLauncher, type Launcher } from './launcher.ts'
import { pageContextOf } from './page-context.ts'
import { pagePlatform } from './page-platform.ts'
import { createPanel, type Panel } from './panel.ts'
import { adoptStyles } from './stylesheet.ts'
import { englishTexts, type WidgetTexts } from './texts.ts'
import { followVisualViewport } from './viewport.ts'
import widgetCss from './widget.css?inline'

export interface ServiceWidgetOptions extends ServiceClientOptions {
  /** The page's CSP nonce, for browsers without constructable style sheets. */
  nonce?: string
  /** Replaces texts of the user interface. */
  texts?: Partial<WidgetTexts>
  /** Where the widget's element is added; the end of `body` if left out. */
  container?: HTMLElement
}

/** The widget on a page. */
export interface ServiceWidget {
  /**
   * Shows the launcher, creates the visitor's session or takes up the tab's, and keeps it renewed until `unmount`. Resolves
   * once there is a session or it is known that there will be none; it never rejects.
   */
  mount(): Promise<void>
  /** Takes the widget off the page and closes its connection. A later `mount` goes on with the session. */
  unmount(): void
  open(): void
  /** Closes the panel. The session goes on. */
  close(): void
  toggle(): void
  /** @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or `session_ended` */
  sendMessage(body: string): WidgetMessage
  /** Sends a failed message once more, as the same operation. */
  retryMessage(clientOperationId: string): boolean
  messages(): readonly WidgetMessage[]
  /** Who the visitor is, as the identity provider's assertion says. Rejects where it cannot be told; the session then stays as it was. */
  identify: ServiceClient['identify']
  /** The visitor has logged out. */
  clearIdentity: ServiceClient['clearIdentity']
  /** Takes away what was asked for, on logout or a change of account. */
  resetVisitor: ServiceClient['resetVisitor']
  /** Subscribes to an event; the answer unsubscribes. */
  on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
}

interface Mounted {
  launcher: Launcher
  panel: Panel
  remove(): void
}

/** The chat with its user interface (section 4.4 of the specification). Touches neither page nor storage before `mount`. */
export function createServiceWidget({ nonce, texts, container, ...options }: ServiceWidgetOptions): ServiceWidget {
  const shownTexts = { ...englishTexts, ...texts }
  const emitter = createEmitter<WidgetEventMap>()
  const platform = { ...pagePlatform(), ...options.platform }
  const client = createServiceClient({ pageContext: pageContextOf, ...options, platform }, emitter)
  let mounted: Mounted | undefined
  let isOpen = false
  let unread = 0

  client.on('message.received', () => {
    if (isOpen) return
    unread += 1
    mounted?.launcher.update(isOpen, unread)
  })

  return {
    mount() {
      mounted ??= build()
      return client.start()
    },
    unmount() {
      if (!mounted) return
      isOpen = false
      unread = 0
      mounted.remove()
      mounted = undefined
      client.stop()
    },
    open,
    close,
    toggle,
    sendMessage: client.sendMessage,
    retryMessage: client.retryMessage,
    messages: client.messages,
    identify: client.identify,
    clearIdentity: client.clearIdentity,
    resetVisitor: client.resetVisitor,
    on: client.on,
  }

  function build(): Mounted {
    const host = element('div', { 'data-service-widget': '' })
    const root = host.attachShadow({ mode: 'open' })
    adoptStyles(root, widgetCss, nonce)
    const colors = adoptStyles(root, '', nonce)
    const panelId = 'panel'
    const panel = createPanel({ client, texts: shownTexts, locale: options.locale, panelId, onClose: close })
    const launcher = createLauncher(shownTexts, panelId, toggle)
    const frame = element('div', { class: 'frame' }, launcher.element, panel.element)
    root.append(frame)
    const configure = () => {
      const { accent, onAccent, focusOnLight, focusOnDark } = accentColors(client.config()?.appearance.accentColor)
      colors.replace(
        `.frame { --accent: ${accent}; --on-accent: ${onAccent}; --focus: ${focusOnLight}; }
        @media (prefers-color-scheme: dark) { .frame { --focus: ${focusOnDark}; } }`,
      )
      frame.dataset.position = client.config()?.appearance.position === 'left' ? 'left' : 'right'
    }
    configure()
    const unsubscribe = client.on('config.loaded', configure)
    const unfollow = followVisualViewport(frame)
    const parent = container ?? document.body
    parent.append(host)
    return {
      launcher,
      panel,
      remove() {
        unsubscribe()
        unfollow()
        panel.dispose()
        host.remove()
      },
    }
  }

  function open() {
    if (!mounted || isOpen) return
    isOpen = true
    unread = 0
    mounted.launcher.update(isOpen, unread)
    mounted.panel.show()
    emitter.emit('panel.opened', {})
  }

  function close() {
    if (!mounted || !isOpen) return
    isOpen = false
    mounted.panel.hide()
    mounted.launcher.update(isOpen, unread)
    mounted.launcher.focus()
    emitter.emit('panel.closed', {})
  }

  function toggle() {
    if (isOpen) close()
    else open()
  }
}
