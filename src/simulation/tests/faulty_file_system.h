#pragma once

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <map>
#include <string>

namespace nrec::simulation {

// The file system of SQLite with faults on demand, for all connections opened while it lives. It offers no shared
// memory, as network file systems. Only one may live at a time.
class FaultyFileSystem {
 public:
  FaultyFileSystem() {
    instance() = this;
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = "faulty";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = open;
    vfs_.xDelete = remove;
    sqlite3_vfs_register(&vfs_, /*makeDflt=*/1);
  }
  ~FaultyFileSystem() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, /*makeDflt=*/1);
    instance() = nullptr;
  }
  FaultyFileSystem(const FaultyFileSystem&) = delete;
  FaultyFileSystem& operator=(const FaultyFileSystem&) = delete;

  // Lets `count` more operations pass (writes or syncs); all later ones end with `code`.
  void fail_writes_after(int count, int code) { writes_ = {count, code}; }
  void fail_syncs_after(int count, int code) { syncs_ = {count, code}; }
  // Lets `count` more operations pass (writes, syncs, cuts and removals of files); the next one kills this process.
  void die_after(int count) { operations_ = count; }
  void mend() { writes_ = syncs_ = {}; }
  // Whether an operation has failed since the last mend().
  bool has_failed() const { return writes_.has_failed || syncs_.has_failed; }

  // Writes to the files whose names end so that no sync has made durable.
  int unsynced_writes(const std::string& suffix) const {
    int count = 0;
    for (const auto& [name, writes] : unsynced_) count += name.ends_with(suffix) ? writes : 0;
    return count;
  }
  int num_syncs() const { return num_syncs_; }

 private:
  struct Fault {
    int remaining = -1;  // negative: none
    int code = SQLITE_OK;
    bool has_failed = false;
    int next() {
      if (remaining < 0) return SQLITE_OK;
      if (remaining > 0) return --remaining, SQLITE_OK;
      has_failed = true;
      return code;
    }
  };
  struct File {
    sqlite3_file base;
    std::string* name;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };

  static FaultyFileSystem*& instance() {
    static FaultyFileSystem* instance = nullptr;
    return instance;
  }
  static File* file_of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
  static sqlite3_file* real_of(sqlite3_file* file) { return file_of(file)->real(); }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    FaultyFileSystem& system = *instance();
    file->pMethods = nullptr;
    sqlite3_file* real = real_of(file);
    real->pMethods = nullptr;
    const int code = system.real_->xOpen(system.real_, name, real, flags, out_flags);
    if (code != SQLITE_OK) return code;
    file_of(file)->name = new std::string(name == nullptr ? "" : name);
    file->pMethods = &methods();
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs*, const char* name, int sync_folder) {
    FaultyFileSystem& system = *instance();
    system.count_operation();
    return system.real_->xDelete(system.real_, name, sync_folder);
  }
  void count_operation() {
    if (operations_ == 0) ::kill(::getpid(), SIGKILL);
    if (operations_ > 0) --operations_;
  }
  static int close(sqlite3_file* file) {
    delete file_of(file)->name;
    return real_of(file)->pMethods->xClose(real_of(file));
  }
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    FaultyFileSystem& system = *instance();
    system.count_operation();
    if (const int code = system.writes_.next(); code != SQLITE_OK) return code;
    ++system.unsynced_[*file_of(file)->name];
    return real_of(file)->pMethods->xWrite(real_of(file), bytes, count, at);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    instance()->count_operation();
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
  }
  static int sync(sqlite3_file* file, int) {
    FaultyFileSystem& system = *instance();
    system.count_operation();
    if (const int code = system.syncs_.next(); code != SQLITE_OK) return code;
    // Tests of this process do not outlive a power loss: the disk is spared.
    system.unsynced_[*file_of(file)->name] = 0;
    ++system.num_syncs_;
    return SQLITE_OK;
  }

  static const sqlite3_io_methods& methods() {
    static const sqlite3_io_methods methods = {
        .iVersion = 1,  // without shared memory
        .xClose = close,
        .xRead = [](sqlite3_file* f, void* to, int count,
                    sqlite3_int64 at) { return real_of(f)->pMethods->xRead(real_of(f), to, count, at); },
        .xWrite = write,
        .xTruncate = truncate,
        .xSync = sync,
        .xFileSize = [](sqlite3_file* f,
                        sqlite3_int64* size) { return real_of(f)->pMethods->xFileSize(real_of(f), size); },
        .xLock = [](sqlite3_file* f, int lock) { return real_of(f)->pMethods->xLock(real_of(f), lock); },
        .xUnlock = [](sqlite3_file* f, int lock) { return real_of(f)->pMethods->xUnlock(real_of(f), lock); },
        .xCheckReservedLock =
            [](sqlite3_file* f, int* is_reserved) {
              return real_of(f)->pMethods->xCheckReservedLock(real_of(f), is_reserved);
            },
        .xFileControl =
            [](sqlite3_file* f, int operation, void* argument) {
              return real_of(f)->pMethods->xFileControl(real_of(f), operation, argument);
            },
        .xSectorSize = [](sqlite3_file* f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); },
        .xDeviceCharacteristics =
            [](sqlite3_file* f) { return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)); },
    };
    return methods;
  }

  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs vfs_{};
  Fault writes_;
  Fault syncs_;
  std::map<std::string, int> unsynced_;
  int num_syncs_ = 0;
  int operations_ = -1;  // negative: any number
};

}  // namespace nrec::simulation
