import type { Handler } from './events.ts'
import { createFeatureApi } from './feature-api.ts'
import { createFeatureRecords } from './feature-record.ts'
import { createForms, type Forms } from './forms.ts'
import type { FeaturesDeps } from './late-features.ts'
import { createLateRequests, type LateRequests } from './late-requests.ts'
import { createPageReports } from './page-reports.ts'
import { createPresence } from './presence.ts'
import type { Activity, PageContext, Presence, StreamEvent, WidgetEventMap } from './types.ts'
import { createVisitorTyping } from './visitor-typing.ts'

/** Operations of the client beside messages. */
export interface FeatureOperations {
  /** Loads the code of these operations ahead of their first use. Never rejects. */
  prepare(): Promise<void>
  /** The visitor has changed the text. Sends a throttled typing report, which expires or ends with the message. */
  startTyping(): void
  /** The text is empty, or the field was left. */
  stopTyping(): void
  /**
   * The visitor is on another page. Reported with a short delay, without query and fragment, if the capability is on.
   *
   * @param page the page asked for with `pageContext` if left out.
   */
  updatePageContext(page?: PageContext): void
  presence(): Presence
  /** Events of the conversation other than messages, oldest first. */
  activity(): readonly Activity[]
  /** Agents' requests that wait for the visitor, oldest first. */
  requests: LateRequests['all']
  acknowledgeNavigation: LateRequests['acknowledgeNavigation']
  acknowledgeScreenshot: LateRequests['acknowledgeScreenshot']
  uploadScreenshot: LateRequests['uploadScreenshot']
  dismissRequest: LateRequests['dismiss']
  /** The form to fill in before the first message. */
  formDue: Forms['due']
  formState: Forms['state']
  submitForm: Forms['submit']
}

export interface Features {
  operations: FeatureOperations
  /** Reads the stored state. */
  load(): void
  /** The client's own events. */
  handlers: {
    [Name in 'session.ready' | 'message.queued' | 'messages.changed' | 'connection.changed']: Handler<
      WidgetEventMap[Name]
    >
  }
  /** The same visitor continues the conversation in another session: forms and activity stay. */
  changeSession(sessionId: string): void
  /** An event of the stream, in order, and when it was received by the browser's clock. */
  takeEvent(event: StreamEvent, receivedAtMs: number): void
}

/** Typing, presence, forms, agents' requests and page reports of one client. */
export function createFeatures(deps: FeaturesDeps): Features {
  const { platform, emitter, config, pageContext, grants, messages } = deps
  const api = createFeatureApi(deps.api, platform.upload)
  const records = createFeatureRecords(platform.storage, deps.siteKey)
  const may = (capability: string) => hasSession && config()?.capabilities[capability] !== false
  const parts = { api, platform, emitter, records, config, grants, aheadMs: () => aheadMs }
  const presence = createPresence({ clock: platform.clock, emitter, records, messages })
  const supports = { navigation: false, screenshots: false, ...deps.supports }
  const requests = createLateRequests({ ...parts, presence, supports })
  const forms = createForms({ ...parts, presence, isLoaded })
  const typing = createVisitorTyping({
    clock: platform.clock,
    isAllowed: () => may('typing') && platform.lifecycle.isOnline(),
    tell: (state) => grants()((grant) => api.setTyping(state, grant)),
  })
  const pages = createPageReports({
    clock: platform.clock,
    isAllowed: () => may('pageContext'),
    current: pageContext,
    report: (page) => grants()((grant) => api.reportPage(page, grant)),
  })
  let hasSession = false
  /** How far the browser's clock is ahead of the service's, at most. */
  let aheadMs = Number.POSITIVE_INFINITY
  /** The conversation whose messages have been loaded. */
  let loaded: string | undefined
  records.load()

  platform.lifecycle.subscribe((signal) => {
    // A page restored from the back/forward cache has missed changes of later pages.
    if (signal !== 'pageshow' || !hasSession) return
    records.load()
    requests.begin()
  })

  return {
    load: records.load,

    handlers: {
      'session.ready': ({ session: { sessionId } }) => {
        if (records.begin(sessionId)) leave()
        records.begin(sessionId)
        hasSession = true
        takeMessages()
        typing.reset()
        requests.begin()
        forms.resume()
      },
      'message.queued': () => {
        typing.stops()
        begin()
      },
      'messages.changed': () => {
        loaded = deps.session()?.conversationId
        // The visitor has left, and there is no new session yet.
        if (hasSession && !loaded) leave()
        takeMessages()
      },
      'connection.changed': ({ state }) => {
        if (state !== 'ended' && state !== 'idle') return
        hasSession = false
        requests.stop()
        forms.stop()
        pages.stop()
        if (state === 'ended') records.forget()
        presence.reset()
      },
    },

    changeSession(sessionId) {
      if (!records.current().sessionId) return
      const hadRequests = requests.all().length > 0
      // Agents' requests were made to the session before.
      requests.stop()
      records.change({ sessionId, requests: [], handled: [] })
      if (hadRequests) emitter.emit('requests.changed', { requests: [] })
    },

    takeEvent(event, receivedAtMs) {
      // A live event gives the difference of the clocks. A replayed one is older and gives an upper bound.
      const sinceMs = receivedAtMs - Date.parse(event.occurredAt)
      if (sinceMs < aheadMs) aheadMs = sinceMs
      presence.takeEvent(event)
      requests.takeEvent(event)
    },

    operations: {
      prepare: () => Promise.resolve(),
      startTyping: typing.writes,
      stopTyping: typing.stops,
      updatePageContext: pages.update,
      presence: presence.presence,
      activity: presence.activity,
      requests: requests.all,
      acknowledgeNavigation: requests.acknowledgeNavigation,
      acknowledgeScreenshot: requests.acknowledgeScreenshot,
      uploadScreenshot: requests.uploadScreenshot,
      dismissRequest: requests.dismiss,
      formDue: forms.due,
      formState: forms.state,
      submitForm: forms.submit,
    },
  }

  /** Stops and forgets everything of this visitor. */
  function leave() {
    const hadRequests = requests.all().length > 0
    hasSession = false
    requests.stop()
    forms.reset()
    pages.stop()
    records.forget()
    presence.reset()
    if (hadRequests) emitter.emit('requests.changed', { requests: [] })
  }

  function takeMessages() {
    if (messages().some(({ author }) => author.kind !== 'system')) begin()
  }

  /** A new conversation has no messages; those of an older one arrive after the session. */
  function isLoaded(): boolean {
    const { continuity, conversationId } = deps.session() ?? {}
    return continuity?.state === 'new' || (conversationId !== undefined && conversationId === loaded)
  }

  /** The conversation has a message, so forms before the first message are no longer due. */
  function begin() {
    if (!records.current().hasBegun) records.change({ hasBegun: true })
  }
}
