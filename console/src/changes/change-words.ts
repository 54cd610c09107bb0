import type { PolicyChange } from '#proto/workspace/v1/workspace_pb.js'

const actions: Record<string, string> = {
  UpdateWorkspace: 'Workspace changed',
  CreateInstallation: 'Installation created',
  UpdateInstallation: 'Installation changed',
  RotateIdentitySecret: 'Identity secret rotated',
  SetConnectionStatus: 'Connection status changed',
  AddSuppressions: 'Suppressions added',
  RemoveSuppressions: 'Suppressions removed',
  BanVisitor: 'Visitor banned',
  UnbanVisitor: 'Ban lifted',
  DeleteInstallation: 'Installation deleted',
  DeleteConnection: 'Connection deleted',
  DeleteSubscription: 'Subscription deleted',
}

export const actionText = (action: string) => actions[action] ?? action

/** Returns the settings of a change in one line, for example `capabilities.typing: false`. */
export const settingsText = ({ settings }: Pick<PolicyChange, 'settings'>) =>
  settings.map(({ name, value }) => `${name}: ${value}`).join(', ')
