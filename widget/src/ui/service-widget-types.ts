import type { ServiceClient, ServiceClientOptions } from '../client.ts'
import type { Handler } from '../events.ts'
import type { WidgetEventMap, WidgetMessage } from '../types.ts'
import type { ShellOptions, Theme } from './shell.ts'
import type { WidgetTexts } from './texts.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Replaces texts of the user interface, in whatever language it speaks. */
  texts?: Partial<WidgetTexts>
  /** Replaces texts in one language, or adds a language: keys are tags such as `de` or `de-CH`. */
  localeTexts?: Record<string, Partial<WidgetTexts>>
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
  /** Opens the panel, and mounts the widget where it is not mounted. */
  open(): void
  /** Closes the panel. The session goes on. */
  close(): void
  toggle(): void
  setOpen(isOpen: boolean): void
  isOpen(): boolean
  showLauncher(): void
  /** Takes the launcher away, not the chat: the page opens it by `open`. */
  hideLauncher(): void
  setTheme(theme: Theme): void
  /** Changes the language at once; undefined goes back to what page and browser ask for. */
  setLocale(locale: string | undefined): void
  /** Writes into the composer, for the visitor to send or not. */
  prefill(text: string): void
  /** Messages from the other side since the panel was last open. The launcher counts agents' requests that wait, too. */
  unreadCount(): number
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
  /**
   * Tells that the visitor is on another page, where the widget cannot see it itself: browsers without the Navigation API do
   * not tell of `history.pushState`.
   */
  updatePageContext: ServiceClient['updatePageContext']
  /** Subscribes to an event; the answer unsubscribes. */
  on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
}
