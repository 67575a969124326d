#pragma once

#include <stdexcept>
#include <string>

namespace nrec {

/// Base of every exception that nrec throws. The text says where, which argument with its value,
/// the rule it broke, and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An array has the wrong number of rows, columns or dimensions.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A number is outside its range (or not finite).
class DomainError : public Error {
 public:
  using Error::Error;
};

/// A problem file or a set of options breaks a rule.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The command line breaks a rule (a ConfigError, because options are the same words in both places).
class UsageError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A file cannot be read or written, or does not hold what its format promises.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The request is meaningful but this build or this combination cannot do it.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// A bug of ours.
class InternalError : public Error {
 public:
  using Error::Error;
};

/// Throws InternalError with `what` and the place when `ok` is false. For our own invariants, not for user input.
void require_internal(bool ok, const char* what);

}  // namespace nrec
