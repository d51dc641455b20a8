"""PostgreSQL's own functions and those of its extensions: which of them a user's SQL may call.
Standard library only.

A function that is not volatile changes nothing, so a user's SQL may call it, unless `REFUSED` names
it. A volatile function is refused unless `HARMLESS` names it. The names are those of PostgreSQL 14
to 18 and of the extensions that come with it.
"""

import re

#: Volatile functions that change nothing outside their own session. They may take long, as every
#: query may: the session's `statement_timeout` ends them.
HARMLESS = frozenset(
    name
    for names in (
        # random numbers, keys and encryption
        "random random_normal setseed array_sample array_shuffle normal_rand gen_random_uuid uuidv4 uuidv7",
        "uuid_generate_v1 uuid_generate_v1mc uuid_generate_v4 gen_random_bytes gen_salt",
        "pgp_sym_encrypt pgp_sym_encrypt_bytea pgp_pub_encrypt pgp_pub_encrypt_bytea",
        # time
        "clock_timestamp timeofday pg_sleep pg_sleep_for pg_sleep_until",
        # the session
        "current_query currval lastval pg_stat_clear_snapshot pg_get_backend_memory_contexts",
        "ssl_cipher ssl_client_cert_present ssl_client_dn ssl_client_dn_field ssl_client_serial",
        "ssl_extension_info ssl_is_used ssl_issuer_dn ssl_issuer_field ssl_version",
        # the methods of TABLESAMPLE
        "bernoulli system system_rows system_time",
        # sizes and parts of relations
        "pg_database_size pg_tablespace_size pg_relation_size pg_table_size pg_indexes_size",
        "pg_total_relation_size pg_partition_ancestors pg_partition_tree pg_sequence_last_value",
        "pg_get_sequence_data currtid2 amvalidate pg_relpages pg_freespace pgstattuple pgstattuple_approx",
        "pgstatindex pgstatginindex pgstathashindex pgrowlocks pg_visibility pg_visibility_map",
        "pg_visibility_map_summary pg_check_visible pg_check_frozen",
        # transactions and locks
        "pg_xact_status txid_status pg_xact_commit_timestamp pg_xact_commit_timestamp_origin",
        "pg_last_committed_xact pg_get_multixact_members pg_prepared_xact pg_lock_status",
        "pg_blocking_pids pg_safe_snapshot_blocking_pids pg_isolation_test_session_is_blocked",
        "pg_old_snapshot_time_mapping",
        # the state of the server
        "pg_is_in_recovery pg_is_wal_replay_paused pg_get_wal_replay_pause_state pg_current_wal_lsn",
        "pg_current_wal_insert_lsn pg_current_wal_flush_lsn pg_last_wal_receive_lsn",
        "pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_available_wal_summaries",
        "pg_get_wal_summarizer_state pg_get_wal_resource_managers pg_show_replication_origin_status",
        "pg_control_checkpoint pg_control_init pg_control_recovery pg_control_system pg_jit_available",
        "pg_collation_actual_version pg_database_collation_actual_version pg_notification_queue_usage",
        "pg_get_loaded_modules pg_get_wait_events pg_get_shmem_allocations pg_get_shmem_allocations_numa",
        "pg_get_aios pg_buffercache_pages pg_buffercache_numa_pages pg_buffercache_summary",
        "pg_buffercache_usage_counts",
        # statistics
        "pg_stat_have_stats pg_stat_get_io pg_stat_get_backend_io pg_stat_get_backend_wal",
        "pg_stat_get_recovery_prefetch pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit",
        "pg_stat_get_xact_function_calls pg_stat_get_xact_function_self_time",
        "pg_stat_get_xact_function_total_time pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted",
        "pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_hot_updated",
        "pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_newpage_updated",
        "pg_stat_get_xact_tuples_returned pg_stat_get_xact_tuples_updated pg_stat_statements",
        "pg_stat_statements_info",
    )
    for name in names.split()
)

#: Why a function is refused -> patterns of whole names. They count for functions that are not
#: volatile, too.
REFUSED = {
    "runs SQL or a program that it gets as text": (
        "ts_stat|ts_rewrite|(query|cursor|table|schema|database)_to_xml.*|crosstab.*|connectby|xpath_table"
        "|xslt_process"
    ),
    "opens connections of its own": "dblink.*|postgres_fdw_.*",
    "acts on other sessions": (
        "pg_terminate_backend|pg_cancel_backend|pg_log_backend_memory_contexts|pg_notify"
        "|pg_(try_)?advisory_.*|pg_export_snapshot"
    ),
    "changes settings": "set_config|set_limit|isn_weak|pg_reload_conf",
    "acts on backups, the write-ahead log or replication": (
        "pg_backup_.*|pg_(start|stop)_backup|pg_is_in_backup|pg_(wal|xlog)_replay_.*|pg_switch_.*|pg_create_.*"
        "|pg_drop_.*|pg_copy_(logical|physical)_replication_slot|pg_logical_.*|pg_replication_.*"
        "|pg_sync_replication_slots|pg_promote|pg_log_standby_snapshot"
    ),
    "changes statistics": (
        "pg_stat_reset.*|pg_stat_statements_reset|pg_stat_force_next_flush"
        "|pg_(clear|restore)_(attribute|relation)_stats"
    ),
    "takes a transaction ID": "txid_current|pg_current_xact_id",
    "changes a sequence": "nextval|setval",
    "reads or changes large objects": "lo_.*|loread|lowrite",
    "reads or changes the server's files": (
        "pg_read_.*|pg_ls_.*|pg_stat_file|pg_file_.*|pg_logdir_ls|pg_current_logfile|pg_hba_file_rules"
        "|pg_ident_file_mappings|pg_show_all_file_settings|pg_rotate_logfile.*"
    ),
    "reads pages, the write-ahead log or its files, whatever the tables' permissions": (
        "get_raw_page|page_header|page_checksum|fsm_page_contents|tuple_data_split|heap_page_.*"
        "|heap_tuple_infomask_flags|bt_metap|bt_multi_page_stats|bt_page_.*|brin_(metapage|page|revmap)_.*"
        "|gin_(leafpage|metapage|page)_.*|gist_page_.*|hash_(bitmap|metapage|page)_.*|pg_get_wal_(block|record).*"
        "|pg_get_wal_stats.*|pg_wal_summary_contents|pg_get_logical_snapshot_.*"
    ),
    "maintains tables, indexes or the cache": (
        "brin_(de)?summarize_.*|gin_clean_pending_list|pg_prewarm|autoprewarm_.*|pg_buffercache_evict.*"
        "|heap_force_.*|pg_truncate_visibility_map|bt_index_.*check|gin_index_check|verify_heapam"
    ),
    "is for the server's own use": (
        "binary_upgrade_.*|pg_nextoid|pg_stop_making_pinned_objects|pg_import_.*"
        "|pg_extension_config_dump|.*_(handler|validator)"
    ),
}

_PATTERNS = {why: re.compile(pattern) for why, pattern in REFUSED.items()}


def refusal(name: str) -> str:
    """Why `REFUSED` has the function of that name; "" if it does not."""
    return next((why for why, pattern in _PATTERNS.items() if pattern.fullmatch(name)), "")
