import { CapabilitiesSchema } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { call, choice, command, type Group, many, must, text, UsageError } from '../command.ts'
import { changedName, deletion, name, overlap, siteKey, workspace } from './flags.ts'

const rpc = WorkspaceService.method

const origin = many(text('an allowed origin; repeatable', 'origins'))
const locale = text('fallback if the visitor’s language is not supported', 'defaultLocale')
const yesOrNo = choice({ yes: true, no: false })
const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const capabilityNames = CapabilitiesSchema.fields.map(({ localName }) => localName)
const capability = choice(Object.fromEntries(capabilityNames.map((name) => [name, name])))

export const installations: Group = {
  availability: command(
    {
      'site-key': siteKey,
      mode: text('auto (opening hours), online or away'),
      'time-zone': text('IANA name, for example Europe/Vienna'),
      hours: many(text('weekly hours, for example "mon-fri 09:00-17:00"; repeatable; none removes them')),
      exception: many(text('"2026-12-25" (closed) or "2026-12-24 09:00-12:00"; repeatable; none removes them')),
      'requires-operator': yesOrNo('yes: somebody must also watch the inbox; or no'),
    },
    ({ workspaces }, { siteKey, hours, exception, ...given }) =>
      workspaces.updateInstallation({
        siteKey,
        availability: {
          ...given,
          weeklyHours: hours && { hours: entriesOf(hours).flatMap(weeklyHoursOf) },
          exceptions: exception && { dates: exceptionsOf(entriesOf(exception)) },
        },
      }),
  ),
  capabilities: command(
    {
      'site-key': siteKey,
      on: many(capability(`one of ${capabilityNames.join(', ')}; repeatable`)),
      off: many(capability('like --on')),
    },
    ({ workspaces }, { siteKey, on = [], off = [] }) => {
      const capabilities = [...on.map((name) => [name, true]), ...off.map((name) => [name, false])]
      return workspaces.updateInstallation({ siteKey, capabilities: Object.fromEntries(capabilities) })
    },
  ),
  translate: command(
    {
      'site-key': siteKey,
      language: must(text('locale tag, for example de or de-AT')),
      title: text('1 to 128 characters'),
      greeting: text('1 to 1,024 characters'),
    },
    ({ workspaces }, { siteKey, language, ...texts }) =>
      workspaces.updateInstallation({ siteKey, appearance: { translations: { [language]: texts } } }),
  ),
  create: call(rpc.createInstallation, {
    connection: must(text('the connection’s id', 'connectionId')),
    name,
    origin: must(origin),
    locale,
  }),
  list: call(rpc.listInstallations, { workspace }),
  update: call(rpc.updateInstallation, {
    'site-key': siteKey,
    name: changedName,
    origin,
    locale,
    status: choice({ enabled: true, disabled: false })('enabled or disabled', 'enabled'),
  }),
  consent: command(
    {
      'site-key': siteKey,
      required: must(yesOrNo('yes or no: whether visitors must agree before they write')),
      url: text('https URL of the policy', 'policyUrl'),
      version: text('version of the policy, 1 to 64 characters', 'policyVersion'),
    },
    ({ workspaces }, { siteKey, ...consent }) => workspaces.updateInstallation({ siteKey, consent }),
  ),
  delete: deletion(rpc.deleteInstallation, { 'site-key': siteKey }),
}

export const identitySecrets: Group = {
  rotate: call(rpc.rotateIdentitySecret, {
    'site-key': siteKey,
    overlap: { ...overlap, description: 'seconds that replaced secrets stay valid; default 24 hours' },
  }),
}

/** The word `none` means an empty list. */
const entriesOf = (given: string[]) => (given.length === 1 && given[0] === 'none' ? [] : given)

/** Reads `mon-fri 09:00-17:00` or `sat 10:00-12:00`. The core checks the times. */
function weeklyHoursOf(text: string) {
  const [, first = '', last = first, from = '', to = ''] =
    /^([a-z]{3})(?:-([a-z]{3}))? (\d\d:\d\d)-(\d\d:\d\d)$/.exec(text.trim().toLowerCase()) ?? []
  const [begin, end] = [weekdays.indexOf(first), weekdays.indexOf(last)]
  if (begin < 0 || end < begin)
    throw new UsageError(`--hours ${JSON.stringify(text)}: write for example "mon-fri 09:00-17:00"`)
  return weekdays.slice(begin, end + 1).map((_, index) => ({ weekday: begin + index + 1, from, to }))
}

/** Reads `2026-12-25` or `2026-12-24 09:00-12:00`. Entries of the same date are combined. */
function exceptionsOf(texts: string[]) {
  const read = texts.map((text) => {
    const match = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d)-(\d\d:\d\d))?$/.exec(text.trim())
    if (!match) throw new UsageError(`--exception ${JSON.stringify(text)}: write a date, or a date and "09:00-12:00"`)
    const [, date = '', from, to = ''] = match
    return { date, hours: from === undefined ? [] : [{ from, to }] }
  })
  return [...Map.groupBy(read, ({ date }) => date)].map(([date, entries]) => ({
    date,
    hours: entries.flatMap(({ hours }) => hours),
  }))
}
