import type { MessageInitShape } from '@bufbuild/protobuf'
import { CapabilitiesSchema } from '#proto/session/v1/session_pb.js'
import type { UpdateInstallationRequestSchema } from '#proto/workspace/v1/workspace_pb.js'
import { command, type Group } from '../command.ts'
import type { Services } from '../services.ts'
import { oneOf, UsageError } from '../usage.ts'

type Change = Omit<MessageInitShape<typeof UpdateInstallationRequestSchema>, 'siteKey' | '$typeName'>

const siteKey = { type: 'string', required: true, description: 'the public site key' } as const
const yesOrNo = { yes: true, no: false }
const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const capabilityNames = CapabilitiesSchema.fields.map(({ localName }) => localName)

const update = ({ workspaces }: Services, siteKey: string, change: Change) =>
  workspaces.updateInstallation({ siteKey, ...change })

/** Commands that set the policies of an installation. */
export const installationPolicies: Group = {
  availability: command({
    summary: 'Set when visitors can reach somebody; given hours or exceptions replace all present ones',
    flags: {
      'site-key': siteKey,
      mode: { type: 'string', description: 'auto (opening hours), online or away' },
      'time-zone': { type: 'string', description: 'IANA name, for example Europe/Vienna' },
      hours: {
        type: 'string',
        multiple: true,
        description: 'weekly hours, for example "mon-fri 09:00-17:00"; repeatable; none removes them',
      },
      exception: {
        type: 'string',
        multiple: true,
        description: '"2026-12-25" (closed) or "2026-12-24 09:00-12:00"; repeatable; none removes them',
      },
      'requires-operator': { type: 'string', description: 'yes: somebody must also watch the inbox; or no' },
    },
    run: (services, { 'site-key': siteKey, mode, 'time-zone': timeZone, hours, exception, ...flags }) => {
      const required = flags['requires-operator']
      return update(services, siteKey, {
        availability: {
          mode,
          timeZone,
          weeklyHours: hours && { hours: entriesOf(hours).flatMap(weeklyHoursOf) },
          exceptions: exception && { dates: exceptionsOf(entriesOf(exception)) },
          requiresOperator: required === undefined ? undefined : oneOf('requires-operator', required, yesOrNo),
        },
      })
    },
  }),
  capabilities: command({
    summary: 'Turn capabilities of an installation on or off',
    flags: {
      'site-key': siteKey,
      on: { type: 'string', multiple: true, description: `one of ${capabilityNames.join(', ')}; repeatable` },
      off: { type: 'string', multiple: true, description: 'like --on' },
    },
    run: (services, { 'site-key': siteKey, on = [], off = [] }) => {
      const named = Object.fromEntries(capabilityNames.map((name) => [name, name]))
      const set = (flag: string, names: string[], value: boolean) =>
        names.map((name) => [oneOf(flag, name, named), value])
      return update(services, siteKey, {
        capabilities: Object.fromEntries([...set('on', on, true), ...set('off', off, false)]),
      })
    },
  }),
  translate: command({
    summary: 'Set title and greeting in another language; without both, remove the language',
    flags: {
      'site-key': siteKey,
      language: { type: 'string', required: true, description: 'locale tag, for example de or de-AT' },
      title: { type: 'string', description: '1 to 128 characters' },
      greeting: { type: 'string', description: '1 to 1,024 characters' },
    },
    run: (services, { 'site-key': siteKey, language, title, greeting }) =>
      update(services, siteKey, { appearance: { translations: { [language]: { title, greeting } } } }),
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
