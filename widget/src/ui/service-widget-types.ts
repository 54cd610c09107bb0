import type { ServiceClient, ServiceClientOptions } from '../client.ts'
import type { Handler } from '../events.ts'
import type { WidgetEventMap, WidgetMessage } from '../types.ts'
import type { ShellOptions, Theme } from './shell.ts'
import type { WidgetTexts } from './texts.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Replaces texts of the user interface in all languages. */
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
  /** Removes the widget from the page and closes its connection. A later `mount` resumes the session. */
  unmount(): void
  /** Opens the panel. Mounts the widget first if necessary. */
  open(): void
  /** Closes the panel. The session continues. */
  close(): void
  toggle(): void
  setOpen(isOpen: boolean): void
  isOpen(): boolean
  showLauncher(): void
  /** Hides the launcher only. The page can still call `open`. */
  hideLauncher(): void
  setTheme(theme: Theme): void
  /** Changes the language at once. Undefined restores the language of the page or browser. */
  setLocale(locale: string | undefined): void
  /** Sets the text of the composer without sending it. */
  prefill(text: string): void
  /** Messages from the other side since the panel was last open. The launcher counts agents' requests that wait, too. */
  unreadCount(): number
  /** @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or `session_ended` */
  sendMessage(body: string): WidgetMessage
  /** Sends a failed message once more, as the same operation. */
  retryMessage(clientOperationId: string): boolean
  messages(): readonly WidgetMessage[]
  /** Identifies the visitor by an assertion of the identity provider. If it rejects, the session is unchanged. */
  identify: ServiceClient['identify']
  /** The visitor has logged out. */
  clearIdentity: ServiceClient['clearIdentity']
  /** Removes the selected data on logout or a change of account. */
  resetVisitor: ServiceClient['resetVisitor']
  /**
   * Tells that the visitor is on another page, where the widget cannot see it itself: browsers without the Navigation API do
   * not tell of `history.pushState`.
   */
  updatePageContext: ServiceClient['updatePageContext']
  /** Subscribes to an event; the answer unsubscribes. */
  on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
}
