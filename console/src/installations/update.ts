import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Installation, UpdateInstallationRequestSchema } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { useAction, useLoad } from '../ui/load.tsx'

type Change = Omit<MessageInitShape<typeof UpdateInstallationRequestSchema>, 'siteKey' | '$typeName'>

/** Properties of a card that edits some settings of an installation. */
export interface InstallationPart {
  installation: Installation
  onChanged: (installation: Installation) => void
}

/** Loads the installations of the workspace, again each `everyMs` if that is given. */
export function useInstallations(everyMs?: number): Installation[] {
  const { api } = useConsole()
  return useLoad(async () => (await api.workspaces.listInstallations({})).installations, [], everyMs).value ?? []
}

export function useUpdate({ installation, onChanged }: InstallationPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()

  async function update(change: Change, announcement: string) {
    const answer = await api.workspaces.updateInstallation({ siteKey: installation.publicSiteKey, ...change })
    if (answer.installation) onChanged(answer.installation)
    announcer.say(announcement)
  }
  return {
    busy,
    failure,
    update,
    /** Like `update`, but runs one call at a time and puts an error into `failure`. */
    save: (change: Change, announcement: string) => run(() => update(change, announcement)),
  }
}
