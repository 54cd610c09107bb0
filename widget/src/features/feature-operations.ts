import type { Activity, AgentRequest, Presence } from '../client/feature-types.ts'
import type { PageContext, Rating } from '../client/types.ts'
import type { AgentRequests } from './agent-requests.ts'
import type { Forms } from './forms.ts'

/** Operations of the client that do not concern messages. */
export interface FeatureOperations {
  /**
   * Reports that the visitor is typing; reports are throttled. Call each time the visitor edits the
   * text.
   */
  startTyping(): void
  /**
   * Reports that the visitor has stopped typing. Call when the visitor empties the text or leaves
   * the field.
   */
  stopTyping(): void
  /**
   * Reports to operators whether the visitor sees the chat. The widget calls this function. An
   * application that shows the chat in its own interface must call it. A hidden page counts as not
   * shown.
   */
  setChatShown(isShown: boolean): void
  /**
   * Reports the visitor's page after a short delay, without query and fragment. Does nothing if the
   * installation's `pageContext` capability is off.
   *
   * @param page the page to report; by default, the result of `pageContext`
   */
  updatePageContext(page?: PageContext): void
  presence(): Presence
  /** Returns the conversation events that are not messages, oldest first. */
  activity(): readonly Activity[]
  /** Returns the pending requests of agents, oldest first. */
  requests(): readonly AgentRequest[]
  acknowledgeNavigation: AgentRequests['acknowledgeNavigation']
  acknowledgeScreenshot: AgentRequests['acknowledgeScreenshot']
  uploadScreenshot: AgentRequests['uploadScreenshot']
  dismissRequest: AgentRequests['dismiss']
  /**
   * Returns the form that the visitor has to fill in before the first message, or undefined if
   * there is none. A form that the visitor has begun to fill in stays due when the installation
   * becomes online or away.
   */
  formDue: Forms['due']
  /** Returns true if the offline form can be offered, because the installation is away. */
  isOfflineFormOffered: Forms['isOffered']
  formState: Forms['state']
  submitForm: Forms['submit']
  /**
   * Rates the closed conversation. `presence().rating` is `given` afterwards, also if the visitor has
   * rated it in another tab. A repeat after a failure with the same rating has an effect once.
   *
   * @throws WidgetError for example `network_error`
   */
  rate(rating: Rating): Promise<void>
}
