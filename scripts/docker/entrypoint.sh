#!/bin/sh
# Does for Postgres and MariaDB what the entrypoints of their public images do: makes the data folder from the same
# variables of the environment, once, and then becomes the server.
set -e

as_postgres() {
  setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

case "$1" in
postgres)
  export PGDATA=/var/lib/postgresql/data
  if [ ! -d "$PGDATA" ]; then
    as_postgres initdb --username "$POSTGRES_USER" --auth "$POSTGRES_HOST_AUTH_METHOD" --encoding UTF8 --no-sync
  fi
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
  ;;
mariadbd)
  data=/var/lib/mysql
  setup=/run/setup.sql
  if [ ! -d "$data/mysql" ]; then
    mariadb-install-db --user=root --datadir="$data" --skip-test-db --auth-root-authentication-method=normal
    cat >"$setup" <<END
CREATE DATABASE IF NOT EXISTS $MARIADB_DATABASE;
CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
ALTER USER IF EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;
END
  fi
  mkdir -p /run/mysqld
  exec "$@" --user=root --datadir="$data" --init-file="$setup"
  ;;
*)
  exec "$@"
  ;;
esac
