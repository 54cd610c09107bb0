import {
  banOf,
  banSession,
  findSession,
  isBrowserBanned,
  isSubjectBanned,
  unbanSession,
  unbanSubject,
} from '../bans/bans.ts'
import { bound } from '../bound.ts'
import { inheritConsent, recordConsent, requireConsent } from '../consents/consents.ts'
import { authorizeReport, closePanel, keepPage, notePanelUse, pageAtStart } from '../consents/observations.ts'
import type { Core } from '../core.ts'
import { clearIdentity, identifyVisitor } from '../identity/identification.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { subjectIdOn } from '../sessions/visitor-ids.ts'
import { renewSession } from './renewal.ts'
import { closeSession, createSession, reportPage, revokeSession } from './sessions.ts'

/** The visitors' rooms as objects, for rooms that still take objects. */
export const createVisitorService = (core: Core) => ({
  visitorAccess: visitorAccessOf(core),
  consents: bound(core, { record: recordConsent, require: requireConsent, inherit: inheritConsent }),
  observations: bound(core, {
    authorize: authorizeReport,
    pageAtStart,
    keepPage,
    panelClosed: closePanel,
    panelUsed: notePanelUse,
  }),
  subjects: bound(core, { idOf: subjectIdOn }),
  sessions: bound(core, {
    create: createSession,
    close: closeSession,
    reportPage,
    revoke: revokeSession,
    find: findSession,
    ban: banSession,
    unban: unbanSession,
    unbanSubject,
    banOf,
    isBrowserBanned,
    isSubjectBanned,
  }),
  renewals: bound(core, { renew: renewSession }),
  identification: bound(core, { identify: identifyVisitor, clear: clearIdentity }),
})

export type VisitorService = ReturnType<typeof createVisitorService>
export type Consents = VisitorService['consents']
export type Observations = VisitorService['observations']
export type Subjects = VisitorService['subjects']
export type Sessions = VisitorService['sessions']
