// A mongosh script: creates the replica set and the service's database user if they do not exist.
const { MONGO_INITDB_ROOT_USERNAME: user, MONGO_INITDB_ROOT_PASSWORD: password, SERVICE_PASSWORD } = process.env
const credentials = `${user}:${encodeURIComponent(password)}`
const hosts = ['mongodb-1:27017', 'mongodb-2:27017', 'mongodb-3:27017']

const first = connect(`mongodb://${credentials}@${hosts[0]}/admin?directConnection=true`)
try {
  first.adminCommand({ replSetGetStatus: 1 })
} catch (error) {
  if (error.codeName !== 'NotYetInitialized') throw error
  first.adminCommand({ replSetInitiate: { _id: 'service', members: hosts.map((host, _id) => ({ _id, host })) } })
}

const service = connect(`mongodb://${credentials}@${hosts.join(',')}/service?replicaSet=service&authSource=admin`)
if (service.getUser('service') === null) {
  service.createUser({ user: 'service', pwd: SERVICE_PASSWORD, roles: ['readWrite'] })
}
