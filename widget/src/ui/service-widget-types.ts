import type { ServiceClient } from '../client/client.ts'
import type { ServiceClientOptions } from '../client/client-options.ts'
import type { Handler, WidgetEventMap } from '../vocabulary/events.ts'
import type { WidgetMessage } from '../vocabulary/types.ts'
import type { WidgetTexts } from './languages/en.ts'
import type { ShellOptions, Theme } from './panel/shell.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Texts that replace the default texts of the user interface in all languages. */
  texts?: Partial<WidgetTexts>
  /**
   * Texts that replace the default texts of one language, or that add a language. The keys are tags
   * such as `de` or `de-CH`.
   */
  localeTexts?: Record<string, Partial<WidgetTexts>>
}

/** Controls the chat widget of a page. */
export interface ServiceWidget {
  /**
   * Shows the launcher, and resumes the tab's session or creates one. The session is renewed until
   * `unmount`. Resolves when the session exists or the attempt to obtain one has ended. Never
   * rejects.
   */
  mount(): Promise<void>
  /**
   * Removes the widget from the page and closes its connection. A later `mount` resumes the
   * session.
   */
  unmount(): void
  /** Opens the panel. Calls `mount` first if necessary. */
  open(): void
  /** Closes the panel. The session continues. */
  close(): void
  toggle(): void
  setOpen(isOpen: boolean): void
  isOpen(): boolean
  showLauncher(): void
  /** Hides the launcher. The page can still open the panel with `open`. */
  hideLauncher(): void
  setTheme(theme: Theme): void
  /**
   * Changes the language at once. Undefined chooses the language from the page and the browser
   * again.
   */
  setLocale(locale: string | undefined): void
  /**
   * Sets the text of the message field without sending it. Text that the visitor has written stays.
   */
  prefill(text: string): void
  /**
   * Returns the number of messages from agents and the system that arrived after the panel was last
   * open. The number on the launcher also includes pending requests of agents.
   */
  unreadCount(): number
  /**
   * Sends a message.
   *
   * @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or
   * `session_ended`
   */
  sendMessage(body: string): WidgetMessage
  /**
   * Retries a failed message with the same operation id. Returns false if no failed message has
   * this id.
   *
   * @throws WidgetError `failure_outdated` if the message has failed again since `failureVersion`
   */
  retryMessage: ServiceClient['retryMessage']
  /** Returns the reason why the chat has ended, or undefined if the chat has not ended. */
  ended: ServiceClient['ended']
  /** Starts a new session after the previous session ended, like *Start a new chat* in the panel. */
  startNew: ServiceClient['startNew']
  messages(): readonly WidgetMessage[]
  /**
   * Identifies the visitor with an assertion of the identity provider. If this fails, rejects and
   * leaves the session unchanged.
   */
  identify: ServiceClient['identify']
  /** Logs the visitor out. */
  clearIdentity: ServiceClient['clearIdentity']
  /**
   * Removes the visitor's data that the parameter selects, for example on logout or a change of
   * account.
   */
  resetVisitor: ServiceClient['resetVisitor']
  /**
   * Reports that the visitor is on another page. Browsers without the Navigation API do not report
   * `history.pushState`, so the application must call this function there.
   */
  updatePageContext: ServiceClient['updatePageContext']
  /** Subscribes to an event. Returns a function that unsubscribes. */
  on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
  /** Subscribes to the next event of this name. */
  once: ServiceClient['once']
}
