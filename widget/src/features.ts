import type { SupportedRequests } from './agent-requests.ts'
import type { Api } from './api.ts'
import type { Emitter } from './events.ts'
import { createFeatureRecords } from './feature-record.ts'
import { createForms, type Forms } from './forms.ts'
import { createLateRequests, type LateRequests } from './late-requests.ts'
import { createPageReports } from './page-reports.ts'
import type { Platform } from './platform.ts'
import { createPresence } from './presence.ts'
import type { Activity, PageContext, Presence, StreamEvent, WidgetConfig, WidgetEventMap } from './types.ts'
import { createVisitorTyping } from './visitor-typing.ts'

export interface FeaturesDeps {
  api: Api
  platform: Platform
  emitter: Emitter<WidgetEventMap>
  siteKey: string
  supports?: Partial<SupportedRequests>
  config(): WidgetConfig | undefined
  pageContext(): PageContext | undefined
  withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer>
}

/** What the client offers beside messages. */
export interface FeatureOperations {
  /** The visitor has changed the text: tells the agents, seldom enough. Ends by itself, and with the message. */
  startTyping(): void
  /** The text is empty, or the field was left. */
  stopTyping(): void
  /**
   * The visitor is on another page. Reported in a moment, without query and fragment, where the installation wants it.
   *
   * @param page the page asked for with `pageContext` if left out.
   */
  updatePageContext(page?: PageContext): void
  presence(): Presence
  /** What happened in the conversation beside messages, oldest first. */
  activity(): readonly Activity[]
  /** Agents' requests that wait for the visitor, oldest first. */
  requests: LateRequests['all']
  acknowledgeNavigation: LateRequests['acknowledgeNavigation']
  acknowledgeScreenshot: LateRequests['acknowledgeScreenshot']
  uploadScreenshot: LateRequests['uploadScreenshot']
  dismissRequest: LateRequests['dismiss']
  /** The form to fill in before the first message. */
  formDue: Forms['due']
  isFormAdvertised: Forms['isAdvertised']
  formState: Forms['state']
  submitForm: Forms['submit']
}

export interface Features {
  operations: FeatureOperations
  /** An event of the stream, in order. */
  takeEvent(event: StreamEvent): void
  /** A page begins: what the one before it left is read. */
  load(): void
}

/** Typing, presence, forms, agents' requests and page reports: begun and ended by the client's own events. */
export function createFeatures(deps: FeaturesDeps): Features {
  const { api, platform, emitter, config, pageContext, withGrant } = deps
  const records = createFeatureRecords(platform.storage, deps.siteKey)
  const may = (capability: string) => hasSession && config()?.capabilities[capability] !== false
  const parts = { api, platform, emitter, records, config, withGrant }
  const presence = createPresence({ clock: platform.clock, emitter, records })
  const supports = { navigation: false, screenshots: false, ...deps.supports }
  const requests = createLateRequests({ ...parts, presence, supports })
  const forms = createForms({ ...parts, presence })
  const typing = createVisitorTyping({
    clock: platform.clock,
    isAllowed: () => may('typing') && platform.lifecycle.isOnline(),
    tell: (state) => withGrant((grant) => api.setTyping(state, grant)),
  })
  const pages = createPageReports({
    clock: platform.clock,
    isAllowed: () => may('pageContext'),
    current: pageContext,
    report: (page) => withGrant((grant) => api.reportPage(page, grant)),
  })
  let hasSession = false

  emitter.on('session.ready', ({ session }) => {
    const isOther = records.begin(session.sessionId)
    hasSession = true
    if (isOther) presence.reset()
    typing.reset()
    pages.begin()
    requests.begin()
    forms.resume()
  })
  platform.lifecycle.subscribe((signal) => {
    // A page that comes back from the browser's memory has missed what the pages after it did.
    if (signal !== 'pageshow' || !hasSession) return
    records.load()
    requests.begin()
  })
  emitter.on('message.queued', () => {
    typing.stops()
    if (!records.current().hasWritten) records.change({ hasWritten: true })
  })
  emitter.on('messages.changed', ({ messages }) => {
    if (records.current().hasWritten || !messages.some(({ author }) => author.kind === 'visitor')) return
    records.change({ hasWritten: true })
  })
  emitter.on('connection.changed', ({ state }) => {
    if (state !== 'ended' && state !== 'idle') return
    hasSession = false
    requests.stop()
    forms.stop()
    pages.stop()
    if (state === 'ended') records.forget()
    presence.reset()
  })

  return {
    load: records.load,
    takeEvent(event) {
      presence.takeEvent(event)
      requests.takeEvent(event)
    },
    operations: {
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
      isFormAdvertised: forms.isAdvertised,
      formState: forms.state,
      submitForm: forms.submit,
    },
  }
}
